import Glibc
import PrismLinux
import PrismTestSupport
import Testing

@Suite("Listening Unix sockets")
struct UnixListenerTests {
  private let folder = TemporaryFolder()

  private func mode(_ path: String) -> UInt32 {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
  }

  @Test("a socket gets its configured mode under any umask, and goes with its owner")
  func modes() throws {
    for wanted: UInt32 in [0o666, 0o660, 0o600] {
      let listener = try UnixListener(path: folder("s"), mode: wanted)
      #expect(mode(folder("s")) == wanted)
      try listener.update(mode: 0o640, group: nil)
      #expect(mode(folder("s")) == 0o640)
      listener.close()
      #expect(access(folder("s"), F_OK) != 0)
    }
  }

  @Test("a socket with a listener is left to its owner; a stale one is replaced")
  func stale() throws {
    let first = try UnixListener(path: folder("s"), mode: 0o600)
    #expect(throws: SocketError.inUse(path: folder("s"))) { try UnixListener(path: folder("s"), mode: 0o600) }
    close(first.descriptor)  // as a killed daemon does: the file stays
    let second = try UnixListener(path: folder("s"), mode: 0o600)
    #expect(LineClient(folder("s")) != nil)
    second.close()
  }

  @Test("closing doesn't remove a socket that somebody else has put there since")
  func notOurs() throws {
    let first = try UnixListener(path: folder("s"), mode: 0o600)
    unlink(folder("s"))
    let second = try UnixListener(path: folder("s"), mode: 0o600)
    first.close()
    #expect(LineClient(folder("s")) != nil)
    second.close()
  }

  @Test("what cannot be bound is said, with what to do")
  func faults() throws {
    try folder.write("precious", to: "file")
    #expect(throws: SocketError.notASocket(path: folder("file"))) {
      try UnixListener(path: folder("file"), mode: 0o600)
    }
    let long = folder(String(repeating: "x", count: 120))
    #expect(throws: SocketError.pathUnusable(path: long, bytesMax: 107)) { try UnixListener(path: long, mode: 0o600) }
    #expect(throws: SocketError.unknownGroup("no-such-group", path: folder("s"))) {
      try UnixListener(path: folder("s"), mode: 0o600, group: "no-such-group")
    }
    let missing = folder("nowhere/s")
    let error = #expect(throws: SocketError.self) { try UnixListener(path: missing, mode: 0o600) }
    #expect(
      error?.description
        == "\(missing): cannot bind: No such file or directory; create its folder (systemd: RuntimeDirectory=)")
  }

  @Test("an inherited socket is taken over, given its own rights, and left in place; anything else is refused")
  func inherited() throws {
    let bound = try UnixListener(path: folder("s"), mode: 0o666)
    let taken = try UnixListener(inherited: dup(bound.descriptor))
    #expect(taken.path == folder("s"))
    try taken.update(mode: 0o660, group: nil)
    #expect(mode(folder("s")) == 0o660)
    taken.close()
    #expect(access(folder("s"), F_OK) == 0)
    let file = open("/dev/null", O_RDONLY)
    #expect(throws: SocketError.notListening(descriptor: file)) { try UnixListener(inherited: file) }
    close(file)
    bound.close()
  }
}
