//! The server with curl, with openssl, and with misbehaving clients.
#![cfg(unix)]

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use example_testing::{PATIENCE, Server, command, explains_itself, output, printed, refuses, run, skip};
use futures_rustls::TlsConnector;
use futures_rustls::client::TlsStream;
use futures_rustls::pki_types::CertificateDer;
use futures_rustls::pki_types::pem::PemObject;
use futures_rustls::rustls::{ClientConfig, RootCertStore};
use paceline::net::TcpStream;
use paceline::prelude::*;
use rustix::process::Signal;

/// Starts a server for a test, and returns the file with its certificate.
fn server(test: &str) -> (Server, String) {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.pem"));
    let file = file.into_os_string().into_string().expect("a path that is text");
    (Server::start(env!("CARGO_BIN_EXE_example-tls"), &["127.0.0.1:0", &file]), file)
}

fn url(server: &Server) -> String {
    format!("https://localhost:{}/", server.addr().port())
}

/// curl, without the proxies of the environment.
fn curl(args: &[&str]) -> Option<std::process::Output> {
    run("curl", &[&["--noproxy", "*", "--silent", "--show-error", "--max-time", "30"], args].concat())
}

#[test]
fn curl_trusts_the_certificate_it_is_given_and_no_other() {
    let (server, cert) = server("curl");
    let url = url(&server);
    let Some(refused) = curl(&[&url]) else { return };
    assert_eq!(refused.status.code(), Some(60), "curl's code for a certificate that it does not trust");
    server.says("UnknownCA");

    let get =
        |more: &[&str]| printed(&curl(&[&["--cacert", &cert, &url], more].concat()).expect("it was there"));
    assert_eq!(get(&["--http1.1"]), "hello over HTTP/1.1 over TLSv1_3\n");
    assert_eq!(get(&["--http1.1", "--tls-max", "1.2"]), "hello over HTTP/1.1 over TLSv1_2\n");
    // The body ends with the session, so the end has to be announced.
    assert_eq!(get(&["--http1.0", "--no-alpn"]), "hello over HTTP/1.0 over TLSv1_3\n");
    match printed(&run("curl", &["--version"]).expect("it was there")).contains("HTTP2") {
        true => assert_eq!(get(&[]), "hello over HTTP/2.0 over TLSv1_3\n"),
        false => skip("this curl has no HTTP/2"),
    }
}

#[test]
fn a_body_of_megabytes_comes_back_as_it_went() {
    let (server, cert) = server("body");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (sent, back) = (folder.join("tls-sent"), folder.join("tls-back"));
    let bytes: Vec<u8> =
        (0..5_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_769).to_le_bytes()).collect();
    fs::write(&sent, &bytes).expect("the folder is ours");
    for version in ["--http1.1", "--http2"] {
        let data = format!("@{}", sent.display());
        let back_path = back.to_str().expect("a path that is text");
        let args = [version, "--cacert", &cert, "--data-binary", &data, "--output", back_path, &url(&server)];
        let Some(output) = curl(&args) else { return };
        printed(&output);
        assert!(fs::read(&back).expect("curl has written it") == bytes, "{version}");
    }
}

/// Returns openssl's output after these bytes are sent.
fn openssl(server: &Server, cert: &str, request: &str) -> Option<String> {
    let addr = server.addr().to_string();
    let mut client = match Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &addr,
            "-CAfile",
            cert,
            "-verify_return_error",
            "-quiet",
            "-no_ign_eof",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(client) => client,
        Err(error) => {
            skip(&format!("openssl is not to be had ({error})"));
            return None;
        }
    };
    // Open as long as this lives: openssl ends with its input.
    let mut stdin = client.stdin.take().expect("it is piped");
    stdin.write_all(request.as_bytes()).expect("it reads");
    let output = output(client, PATIENCE);
    drop(stdin);
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !errors.contains("unexpected eof"), "{answer}{errors}");
    Some(answer)
}

#[test]
fn openssl_sees_the_end_announced() {
    let (server, cert) = server("openssl");
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let Some(answer) = openssl(&server, &cert, request) else { return };
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello over HTTP/1.1 over TLSv1_3\n")
    );
}

#[test]
fn failed_handshakes_are_reported_and_delay_no_other_client() {
    let (server, cert) = server("bad");
    let from = |stream: &std::net::TcpStream| stream.local_addr().expect("it has one").to_string();

    // HTTP without TLS, for which curl would get an error, too.
    let mut plain = server.connect();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is connected");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert_eq!(answer.first(), Some(&21), "an alert: {answer:x?}");
    assert!(server.says(&from(&plain)).contains("InvalidContentType"));

    // The first half of a ClientHello, and no more.
    let mut half = server.connect();
    half.write_all(&[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]).expect("it is connected");

    // The same, and a reset.
    let mut resets = server.connect();
    resets.write_all(&[22, 3, 1, 0, 200, 1, 0]).expect("it is connected");
    let resets_from = from(&resets);
    socket2::SockRef::from(&resets).set_linger(Some(Duration::ZERO)).expect("a socket takes it");
    drop(resets);
    assert!(server.says(&resets_from).contains("reset"));

    if let Some(output) = curl(&["--cacert", &cert, &url(&server)]) {
        printed(&output);
    }
    assert_eq!(half.read(&mut [0; 64]).expect("no reset"), 0);
    assert!(server.says(&from(&half)).contains("not done within 3s"));
}

/// Opens a session with this protocol.
async fn connect(server: &Server, cert: &str, protocol: &str) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert).expect("the server has written it")).expect("it is one");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.into()];
    let stream = TcpStream::connect(server.addr()).await?;
    TlsConnector::from(Arc::new(config)).connect("localhost".try_into().expect("it is a name"), stream).await
}

/// The start of HTTP/2: its preface, empty settings, and a request for /.
const HTTP2: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\x05\0\0\0\x01\x82\x87\x84";

#[test]
fn a_client_without_a_request_is_disconnected() {
    let (server, cert) = server("silent");
    let begins: [(&str, &str, &[u8]); 7] = [
        ("nothing", "http/1.1", b""),
        ("half of what is not what was agreed on", "http/1.1", b"PRI * "),
        ("half a head", "http/1.1", b"GET / HTTP/1.1\r\nHost: "),
        ("a request, and no other", "http/1.1", b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
        ("nothing of HTTP/2", "h2", b""),
        ("HTTP/2 without a request", "h2", &HTTP2[..33]),
        ("a request of HTTP/2, and no answer to a ping", "h2", HTTP2),
    ];
    paceline::block_on(async {
        let mut open = Vec::new();
        for (name, protocol, bytes) in begins {
            let mut tls = connect(&server, &cert, protocol).await.expect("it shakes hands");
            tls.write_all(bytes).await.expect("it is connected");
            tls.flush().await.expect("it is connected");
            open.push((name, tls));
        }
        for (name, mut tls) in open {
            let mut answer = Vec::new();
            let end = paceline::timeout(PATIENCE, tls.read_to_end(&mut answer)).await;
            // Cut off or announced, but an end.
            let _ = end.unwrap_or_else(|_| panic!("{name}: it stays"));
            let asked = name.starts_with("a request");
            assert_eq!(answer.windows(6).any(|part| part == b"hello "), asked, "{name}: {answer:x?}");
        }
    });
}

#[test]
fn signals_let_requests_finish_and_refuse_new_clients() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, cert) = server(&format!("{signal:?}"));
        let answer = paceline::block_on(paceline::timeout(PATIENCE, async {
            let mut tls = connect(&server, &cert, "http/1.1").await?;
            tls.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\n").await?;
            tls.flush().await?;
            // The answer begins as soon as the server has the request, and continues with its body.
            let mut answer = vec![0; 15];
            tls.read_exact(&mut answer).await?;
            server.signal(signal);
            while TcpStream::connect(server.addr()).await.is_ok() {
                paceline::Timer::after(Duration::from_millis(5)).await;
            }
            tls.write_all(b"hello\n").await?;
            tls.flush().await?;
            tls.read_to_end(&mut answer).await?;
            io::Result::Ok(answer)
        }));
        let answer = answer.expect("in time").expect("an answer, and the announcement of its end");
        assert!(answer.starts_with(b"HTTP/1.1 200 OK") && answer.ends_with(b"hello\n"));
        assert!(server.ended().success());
    }
}

/// A client that announces its end, and closes its side, gets its answer nevertheless.
#[test]
fn half_closed_is_not_closed() {
    let (server, cert) = server("half");
    let body = "x".repeat(1 << 20);
    let request =
        format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let answer = paceline::block_on(paceline::timeout(PATIENCE, async {
        let tls = connect(&server, &cert, "http/1.1").await?;
        let (mut read, mut write) = tls.split();
        let ask = async {
            write.write_all(request.as_bytes()).await?;
            write.close().await
        };
        let mut answer = String::new();
        futures::future::try_join(ask, read.read_to_string(&mut answer)).await?;
        std::io::Result::Ok(answer)
    }));
    let answer = answer.expect("in time").expect("an answer, and the announcement of its end");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(answer.matches('x').count(), body.len());
}

#[test]
fn without_a_file_for_the_certificate_it_has_a_name_for_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tls-default");
    fs::create_dir_all(&folder).expect("the folder is ours");
    let mut command = command(env!("CARGO_BIN_EXE_example-tls"));
    let server = Server::spawn(PATIENCE, command.arg("127.0.0.1:0").current_dir(&folder));
    server.says("with the certificate in example-tls-cert.pem, until Ctrl-C");
    let certificate = fs::read_to_string(folder.join("example-tls-cert.pem")).expect("it was written");
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"), "{certificate}");
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let (server, file) = server("in-use");
    let said = refuses(env!("CARGO_BIN_EXE_example-tls"), &[&server.addr().to_string(), &file], 1);
    assert!(said.contains(&server.addr().to_string()) && said.contains("Address already in use"), "{said}");
}

#[test]
fn it_explains_itself_and_what_it_cannot_use_it_refuses() {
    explains_itself(env!("CARGO_BIN_EXE_example-tls"), &[&["nonsense"]]);
}
