//! The program without arguments: two clients of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_rustls::TlsConnector;
use futures_rustls::pki_types::{CertificateDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use paceline::hyper::{Executor, Io};
use paceline::net::TcpStream;
use paceline::spawn;

use crate::AnyError;

/// Runs a client that trusts the certificate, and one that does not.
pub(crate) async fn talk(addr: SocketAddr, cert: &CertificateDer<'static>) -> Result<(), AnyError> {
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone())?;
    print!("{}", get(addr, roots).await?);

    match get(addr, RootCertStore::empty()).await {
        Ok(answer) => Err(format!("a client without trusted certificates got an answer: {answer}").into()),
        Err(error) => {
            println!("a client without trusted certificates: {error}");
            Ok(())
        }
    }
}

async fn get(addr: SocketAddr, roots: RootCertStore) -> Result<String, AnyError> {
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(addr).await?;
    let tls =
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, stream).await?;

    let (mut sender, connection) = http2::handshake(Executor, Io::new(tls)).await?;
    let _connection = spawn(connection);
    let request = Request::get("https://localhost/").body(Full::<Bytes>::default())?;
    let answer = sender.send_request(request).await?.into_body().collect().await?;
    Ok(String::from_utf8_lossy(&answer.to_bytes()).into_owned())
}
