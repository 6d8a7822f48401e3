import Testing

@testable import PrismInputs

struct EventRecordTests {
  /// Maps of one member, each of which is the key of the one before it, and the innermost key, then their values.
  private static let nested = [UInt8](repeating: 0x81, count: 40) + [0xA1, 0x61] + [UInt8](repeating: 1, count: 40)

  @Test(
    "a map or an array as a key is malformed: keys within keys would double their escapes at each level",
    arguments: [nested, [0x81, 0x91, 1, 1], [0x81, 0xA1, 0x61, 0x81, 0x80, 1]])
  func containers(bytes: [UInt8]) {
    var reader = MsgPackReader(0..<bytes.count)
    do throws(MsgPackReader.Fault) {
      var text: [UInt8] = []
      _ = try EventRecord.append(&reader, bytes.span, to: &text)
      Issue.record("the record is taken")
    } catch {
      guard case .malformed = error else {
        Issue.record("\(error)")
        return
      }
    }
  }
}
