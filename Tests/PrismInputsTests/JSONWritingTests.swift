import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs

struct JSONWritingTests {
  /// Every one that a JSON string can't have as it is, at each place of a word, with plain text around it.
  private static let places: [[UInt8]] = ([0, 9, 10, 31, 34, 92, 127] as [UInt8]).flatMap { byte in
    (0..<20).map { place in
      var text = [UInt8](repeating: 0x61, count: 20)
      text[place] = byte
      return text
    }
  }

  private static func quoted(_ text: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    output.appendQuoted(text.span)
    return output
  }

  @Test("a quoted text is the same text for a JSON parser, and has no control character", arguments: places)
  func everyPlace(text: [UInt8]) throws {
    let quoted = Self.quoted(text)
    #expect(try JSONValue(parsing: quoted).string == String(decoding: text, as: UTF8.self))
    #expect(!quoted.contains { $0 < 32 || $0 == 127 })
  }

  @Test("so it is for many of them, one after the other", arguments: [1, 63, 64, 65, 1000])
  func runs(count: Int) throws {
    for byte in [0, 10, 34, 127] as [UInt8] {
      for text in [[UInt8](repeating: byte, count: count), [0x61] + [UInt8](repeating: byte, count: count) + [0x62]] {
        #expect(try JSONValue(parsing: Self.quoted(text)).string == String(decoding: text, as: UTF8.self))
      }
    }
  }

  @Test("so it is for any bytes; what is no UTF-8 becomes U+FFFD") func randomBytes() throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("JSONWritingTests"))
    for _ in 0..<5_000 {
      let most = Bool.random(using: &random) ? UInt8(127) : 255
      let text = (0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 0...most, using: &random) }
      #expect(try JSONValue(parsing: Self.quoted(text)).string == String(decoding: text, as: UTF8.self))
    }
  }
}
