import Dispatch
import Glibc
import PrismTestSupport
import Synchronization

/// A daemon that follows a script: one list of steps a connection, in the order of the connections.
final class ScriptedDaemon: Sendable {
  enum Step: Sendable {
    /// Waits for that many lines.
    case read(lines: Int)
    case write(String)
  }

  let path: String
  private let folder: String
  private let listener: Int32
  private let received = Mutex<[String]>([])
  private let ends: [DispatchSemaphore]

  init(_ connections: [[Step]]) {
    ends = connections.map { _ in DispatchSemaphore(value: 0) }
    folder = TemporaryFolder.make()
    path = folder + "/ingest.sock"
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    listen(listener, 16)
    DispatchQueue(label: "scripted-daemon").async { [self] in
      for (script, end) in zip(connections, ends) {
        serve(script)
        end.signal()
      }
    }
  }

  deinit {
    close(listener)
    unlink(path)
    rmdir(folder)
  }

  /// Every line that came, over all connections.
  var lines: [String] { received.withLock { $0 } }

  /// Until the connection of that number is closed.
  func waitForEnd(of connection: Int) { ends[connection].wait() }

  private func serve(_ script: [Step]) {
    let connection = accept(listener, nil, nil)
    defer { close(connection) }
    for step in script {
      switch step {
      case .read(let count): for _ in 0..<count { readLine(connection) }
      case .write(let text): _ = Array(text.utf8).withUnsafeBytes { send(connection, $0.baseAddress, $0.count, 0) }
      }
    }
  }

  private func readLine(_ connection: Int32) {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while recv(connection, &byte, 1, 0) == 1, byte != 0x0A { line.append(byte) }
    received.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
  }
}
