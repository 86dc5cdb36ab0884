// The same responder as the other servers, on ACE_TP_Reactor: the original of the Leader/Followers pattern.
//
//   ace-server PORT --threads N --executors M --steps-per-micro N
//
// M reactors, on ports from PORT on, share the N threads; each has one at least.
// N threads run the reactor's event loop: one at a time waits in select(), takes one event, suspends that
// handle, promotes a follower and calls handle_input. One event per select() is ACE's design.
// select() limits it to descriptors below FD_SETSIZE, so it does not take part in runs of 1 000 connections.

#include <ace/Acceptor.h>
#include <ace/INET_Addr.h>
#include <ace/Reactor.h>
#include <ace/SOCK_Acceptor.h>
#include <ace/SOCK_Stream.h>
#include <ace/Svc_Handler.h>
#include <ace/TP_Reactor.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr char response[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\nHello, World!";

// As the driver has calibrated them, in Rust: a step there and here have to take the same time.
std::uint64_t steps_per_micro = 1;

void steps(std::uint64_t count) {
  volatile std::uint64_t state = 1;
  for (std::uint64_t i = 0; i < count; ++i) state = state * 6364136223846793005ULL + 1;
}

void work(const std::string &path) {
  if (path == "/b") {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } else if (path == "/c") {
    steps(5'000 * steps_per_micro);
  } else if (path.size() > 2 && path[1] == 'w') {
    steps(std::strtoull(path.c_str() + 2, nullptr, 10) * steps_per_micro);
  }
}

class Connection : public ACE_Svc_Handler<ACE_SOCK_STREAM, ACE_NULL_SYNCH> {
 public:
  int handle_input(ACE_HANDLE) override {
    const ssize_t read = peer().recv(buffer_ + filled_, sizeof(buffer_) - filled_);
    if (read <= 0) return -1;
    filled_ += static_cast<std::size_t>(read);
    std::string answers;
    std::size_t start = 0;
    for (;;) {
      const char *begin = buffer_ + start;
      const void *end = memmem(begin, filled_ - start, "\r\n\r\n", 4);
      if (end == nullptr) break;
      const std::size_t length = static_cast<const char *>(end) - begin + 4;
      const std::string head(begin, length);
      const std::size_t from = head.find(' ');
      if (from != std::string::npos) work(head.substr(from + 1, head.find_first_of(" \r", from + 1) - from - 1));
      answers.append(response, sizeof(response) - 1);
      start += length;
    }
    std::memmove(buffer_, buffer_ + start, filled_ - start);
    filled_ -= start;
    if (filled_ == sizeof(buffer_)) return -1;
    if (answers.empty()) return 0;
    return peer().send_n(answers.data(), answers.size()) < 0 ? -1 : 0;
  }

 private:
  char buffer_[2048];
  std::size_t filled_ = 0;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc != 8 || std::strcmp(argv[2], "--threads") != 0 || std::strcmp(argv[4], "--executors") != 0) return 2;
  if (std::strcmp(argv[6], "--steps-per-micro") != 0) return 2;
  const int executors = std::max(1, std::atoi(argv[5])), threads_each = std::max(1, std::atoi(argv[3]) / executors);
  steps_per_micro = std::strtoull(argv[7], nullptr, 10);
  using Acceptor = ACE_Acceptor<Connection, ACE_SOCK_ACCEPTOR>;
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::vector<std::thread> threads;
  for (int i = 0; i < executors; ++i) {
    // Never deleted: the process ends by being killed.
    auto *reactor = new ACE_Reactor(new ACE_TP_Reactor, true);
    acceptors.push_back(std::make_unique<Acceptor>());
    const ACE_INET_Addr address(static_cast<u_short>(std::atoi(argv[1]) + i), "127.0.0.1");
    if (acceptors.back()->open(address, reactor) == -1) return 1;
    // ACE listens with a backlog of 5; as long as the others' it does not drop connections.
    if (listen(acceptors.back()->get_handle(), 4096) == -1) return 1;
    for (int j = 0; j < threads_each; ++j) threads.emplace_back([=] { reactor->run_reactor_event_loop(); });
  }
  for (auto &thread : threads) thread.join();
}
