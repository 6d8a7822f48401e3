import Glibc
import PrismCollector
import PrismProtocol

/// The command line, and the files that it names.
struct Flags {
  static let usage = """
    usage: prism-collector [--listen ADDR:PORT] --key ID=FILE [--key ID=FILE …] --state DIR [--token-file FILE] [--print]

      --listen ADDR:PORT   where packets are taken (127.0.0.1:8080); port 0 takes any that is free
      --key ID=FILE        a key of the senders: 32 or 64 hexadecimal digits, not readable by others
      --state DIR          the folder of the database, made when it is missing
      --token-file FILE    the bearer token that every sender must give
      --print              each new report as one line of JSON on standard output

    Exit codes: 0, 64 usage, 69 a resource is not there, 73 cannot create, 78 configuration (sysexits.h).
    """

  struct Fault: Error {
    var exitCode: Int32
    var message: String
  }

  var options = CollectorOptions(state: "", keys: [:])
  var prints = false

  /// - Throws: 64 for the command line, 78 for a key, 73 for the folder.
  init(_ words: [String]) throws(Fault) {
    var rest = words[...]
    while let word = rest.popFirst() {
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      if word == "--print" {
        prints = true
        continue
      }
      guard ["--listen", "--key", "--state", "--token-file"].contains(parts[0]),
        let value = parts.count == 2 ? parts[1] : rest.popFirst()
      else { throw Fault(exitCode: 64, message: "`\(word)` is not understood\n\(Self.usage)") }
      try take(parts[0], value)
    }
    guard !options.state.isEmpty, !options.keys.isEmpty else {
      throw Fault(exitCode: 64, message: "--state and at least one --key are needed\n\(Self.usage)")
    }
    guard mkdir(options.state, 0o700) == 0 || errno == EEXIST else {
      throw Fault(exitCode: 73, message: "\(options.state): cannot be made: \(String(cString: strerror(errno)))")
    }
  }

  private mutating func take(_ flag: String, _ value: String) throws(Fault) {
    switch flag {
    case "--listen": options.listen = value
    case "--state": options.state = value
    case "--token-file": options.token = Secret(try Self.read(value).filter { $0 > 0x20 })
    default:
      let parts = value.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { throw Fault(exitCode: 64, message: "--key: write ID=FILE") }
      guard let key = Hex.decode(try Self.read(parts[1]).filter { $0 > 0x20 }), [16, 32].contains(key.count) else {
        throw Fault(exitCode: 78, message: "\(parts[1]): a key file holds 32 or 64 hexadecimal digits")
      }
      options.keys[parts[0]] = Secret(key)
    }
  }

  private static func read(_ path: String) throws(Fault) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw Fault(exitCode: 78, message: "\(path): cannot be read: \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & 0o004 == 0 else {
      throw Fault(exitCode: 78, message: "\(path): others may read it; run chmod 600 \(path)")
    }
    var bytes = [UInt8](repeating: 0, count: 16 * 1024)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return Array(bytes.prefix(max(0, count)))
  }
}
