import PrismBase
import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("What is taken as YAML")
struct YAMLFileTests {
  /// The faults of a daemon's file with these bytes.
  private func lines(_ bytes: [UInt8]) throws -> [String] {
    let folder = try ConfigurationFolder()
    try folder.write("prismd.yaml", bytes)
    return folder.faultLines()
  }

  @Test("JSON is YAML, with its tabs and its surrogate pairs")
  func json() throws {
    let text =
      "{\n\t\"common\": {\"mood\": \"\\uD83D\\uDE00\", \"path\": \"a\\\\ud83d\\/b\"},\n\t\"log\": {\"level\": \"debug\"}\n}"
    let daemon = try ConfigurationFolder(["prismd.yaml": text]).load().snapshot.daemon
    #expect(daemon.common == ["mood": "😀", "path": "a\\ud83d/b"])
    #expect(daemon.logLevel == .debug)
  }

  @Test("a byte order mark and Windows line ends do no harm")
  func byteOrderMark() throws {
    let folder = try ConfigurationFolder()
    try folder.write("prismd.yaml", [0xEF, 0xBB, 0xBF] + Array("log:\r\n  level: error\r\n".utf8))
    #expect(try folder.load().snapshot.daemon.logLevel == .error)
  }

  @Test("another encoding is a fault on the first line that shows it")
  func encoding() throws {
    let latin1 = Array("state: /tmp\ncommon:\n  city: K".utf8) + [0xF6] + Array("ln\n".utf8)
    #expect(try lines(latin1) == ["prismd.yaml:3: YAML: is not UTF-8; save the file in that encoding"])
    let utf16: [UInt8] = [0xFF, 0xFE, 0x61, 0, 0x3A, 0, 0x0A, 0]
    #expect(try lines(utf16) == ["prismd.yaml:1: YAML: is not UTF-8; save the file in that encoding"])
  }

  @Test("a control character is a fault on its line")
  func controlCharacter() throws {
    #expect(
      try lines(Array("log:\n  level: in\u{1}fo\n".utf8)) == ["prismd.yaml:2: YAML: control characters are not allowed"]
    )
  }

  @Test(
    "a fault of the syntax has its line and column, and says what to write",
    arguments: [
      ("log:\n  level:info\n  format: text\n", "3: YAML: column 9: a colon is where no key can be; here or above it"),
      ("state: a: b\n", "1: YAML: column 9: a colon is where no key can be; here or above it"),
      ("keys: - {id: main}\n", "1: YAML: column 7: a list begins on a line of its own, below its key"),
      ("keys:\n  - {id: main}\n  id: other\n", "3: YAML: column 3: an element of a list is expected; each begins"),
      ("state: %a\n", "1: YAML: column 8: no value begins with this character; put the value in quotes"),
      ("keys: [a, b\nstate: /tmp/a\n", "1: YAML: column 7: a list in brackets is not closed; write commas"),
      ("log: {level: info\nstate: /tmp/a\n", "1: YAML: column 6: a map in braces is not closed; write commas"),
      ("a: |x\n", "1: YAML: column 5: did not find expected comment or line break while scanning a block scalar"),
    ])
  func syntax(text: String, start: String) throws {
    let found = try lines(Array(text.utf8))
    #expect(found.count == 1 && found[0].hasPrefix("prismd.yaml:\(start)"), "\(found)")
  }

  @Test("a megabyte in one value is a fault, and the rest is checked all the same")
  func largeScalar() throws {
    let text = "state: \"" + String(repeating: "x", count: 1_000_000) + "\"\ndurability: fast\n"
    #expect(
      try lines(Array(text.utf8)) == [
        "prismd.yaml:1: YAML: a value of 1000000 bytes, must be at most 65536",
        "prismd.yaml:2: durability: is fast, must be full or normal",
      ])
  }

  @Test("a file over a MiB is not read")
  func largeFile() throws {
    let comment = [UInt8](repeating: 0x23, count: 1_048_577)
    #expect(try lines(comment) == ["prismd.yaml:1: file: cannot be read: over 1048576 bytes, the most it may have"])
  }

  @Test("a hundred thousand values are too many")
  func manyNodes() throws {
    let text = "keys: [" + String(repeating: "1,", count: 100_000) + "]\n"
    #expect(try lines(Array(text.utf8)) == ["prismd.yaml:1: YAML: has over 100000 values"])
  }

  @Test("a file with any part cut off, turned or repeated is read as a configuration or as faults")
  func mutations() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let folder = try ConfigurationFolder(["k1.key": "00112233445566778899aabbccddeeff"])
    let sound = Array(
      "ingest: {socket: /tmp/i, mode: \"0660\"}\ncommon:\n  a: ${HOME:-x}\nkeys: [{id: k1, file: k1.key}]\n".utf8)
    for _ in 0..<2000 {
      var bytes = sound
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let position = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[position] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.insert(contentsOf: bytes[position...].prefix(8), at: position)
        default: bytes.removeSubrange(position..<min(bytes.count, position + 3))
        }
      }
      try folder.write("prismd.yaml", bytes)
      let lines = folder.faultLines()
      #expect(lines.allSatisfy { $0.contains(/^[^:]+:[1-9][0-9]*: .+: .+/) }, "seed \(seed): \(lines)")
    }
  }
}
