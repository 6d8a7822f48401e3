import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismPacket

private struct Bomb: Sendable {
  var name: String
  var head = ColumnHead(lines: 10_000, textBytes: 4096, columns: 1, words: 0)
  var why = PacketError.unpackFailed
  /// Of a line.
  var shape = #"{"v":\#("\n")}"#
  var column: @Sendable (inout ColumnRuns) -> Void = { $0.constant("1") }

  static let rows = 10_000
  /// Of the text, and of the columns.
  static let bytesMax = 1 << 20
  private static let long = String(repeating: "x", count: 90)
  static let all: [Bomb] = [
    Bomb(name: "a constant") { $0.constant(long) },
    Bomb(name: "values") { $0.texts(.values, String(repeating: long + "\n", count: rows)) },
    Bomb(name: "strings") { $0.texts(.strings, String(repeating: long + "\n", count: rows)) },
    Bomb(name: "empty strings") { $0.texts(.strings, String(repeating: "\n", count: rows)) },
    Bomb(name: "words", head: ColumnHead(lines: rows, textBytes: 4096, columns: 1, words: 1)) {
      $0.append(byte: ColumnKind.words.rawValue)
      $0.append(1)
      $0.text(long + "\n")
      $0.integers(0)
    },
    Bomb(name: "booleans") {
      $0.append(byte: ColumnKind.booleans.rawValue)
      $0.append(run: rows / 8) { _ in }
    },
    Bomb(name: "hexadecimal") {
      $0.append(byte: ColumnKind.hexadecimal.rawValue)
      $0.append(byte: 100)
      $0.append(run: 100 * rows) { _ in }
    },
    Bomb(name: "hexadecimal of no bytes") {
      $0.append(byte: ColumnKind.hexadecimal.rawValue)
      $0.append(byte: 0)
    },
    Bomb(name: "hexadecimal with gaps") {
      $0.append(byte: ColumnKind.someHexadecimal.rawValue)
      $0.append(byte: 255)
      $0.append(run: rows / 8) { _ in }
    },
    Bomb(name: "ids") {
      $0.append(byte: ColumnKind.ids.rawValue)
      $0.text(long)
      $0.append(byte: 16)
      $0.append(byte: 16)
      $0.integers(.max)
    },
    Bomb(name: "numbers") {
      $0.append(byte: ColumnKind.numbers.rawValue)
      $0.append(byte: 18)
      $0.append(byte: 18)
      $0.integers(.min)
    },
    Bomb(name: "a shape", shape: #"{"\#(long)":\#("\n")}"#),
    Bomb(
      name: "4,096 columns of 10,000 constants",
      head: ColumnHead(lines: rows, textBytes: 4096, columns: 4096, words: 0),
      shape: String(repeating: "\n", count: 4096)
    ) { runs in for _ in 0..<4096 { runs.constant("1") } },
    Bomb(
      name: "one column more", head: ColumnHead(lines: rows, textBytes: 4096, columns: 4097, words: 0), why: .tooLarge),
    Bomb(
      name: "65,537 words", head: ColumnHead(lines: rows, textBytes: 4096, columns: 1, words: 65_537), why: .tooLarge),
    Bomb(
      name: "20,001 lines", head: ColumnHead(lines: 20_001, textBytes: 4096, columns: 1, words: 0), why: .countMismatch),
    Bomb(
      name: "a byte of text more than is allowed",
      head: ColumnHead(lines: rows, textBytes: bytesMax + 1, columns: 1, words: 0), why: .tooLarge),
    Bomb(name: "more columns than is allowed", why: .tooLarge) {
      $0.texts(.values, String(repeating: long + long + "\n", count: rows))
    },
  ]
}

/// Small packets that would make much. docs/vectors/columns.json has those that are wrong in other ways.
@Suite("Columns: nothing makes more than the head says")
struct ColumnBombTests {
  @Test("30 KiB that would make more are refused, in every kind of column", arguments: 0..<18)
  func bombs(index: Int) throws {
    #expect(Bomb.all.count == 18)
    let bomb = Bomb.all[index]
    var runs = ColumnRuns()
    runs.append(1)
    runs.text(bomb.shape)
    runs.integers(1)
    bomb.column(&runs)
    let block = bomb.head.bytes + (try ZstdCompressor().pack(runs.joined().bytes))
    #expect(block.count < 30 * 1024, "\(bomb.name)")
    var random = SeededRandom(seed: 1)
    var headers = V2PacketTests.headers(.meta, count: Bomb.rows, &random)
    headers.format = BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .zstd, form: .columns)
    let contents = PackedContents(
      format: headers.format, rawBytes: 0, bodyBytes: 0, metaBlock: block, payloadBlocks: nil)
    let key = V2PacketTests.key(.aes128GCM)
    let packet = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: key, encoding: .zstd).seal(headers, contents)
    let limits = PacketLimits(metaBlockBytesMax: Bomb.bytesMax)
    let reader = try PacketReader(cipher: .aes128GCM, key: key, limits: limits)
    #expect(throws: bomb.why, "\(bomb.name)") { try reader.read(packet.headers, body: packet.body, mac: nil) }
  }
}

extension ColumnRuns {
  fileprivate mutating func text(_ text: String) { Array(text.utf8).withUnsafeBufferPointer { append(text: $0) } }

  fileprivate mutating func constant(_ text: String) {
    append(byte: ColumnKind.constant.rawValue)
    self.text(text)
  }

  fileprivate mutating func texts(_ kind: ColumnKind, _ text: String) {
    append(byte: kind.rawValue)
    self.text(text)
  }

  /// The same one 10,000 times, which takes no bytes.
  fileprivate mutating func integers(_ value: Int64) {
    append(byte: IntegerColumn.Mode.offsets.rawValue)
    append(signed: value)
    append(byte: 0)
  }
}
