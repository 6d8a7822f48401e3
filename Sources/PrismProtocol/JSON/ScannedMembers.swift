/// The members of a JSON object by their places in its text. One is used for text after text.
package struct ScannedMembers {
  package struct Member: Sendable {
    package let key: ScannedString
    /// The place of its value.
    package let value: Int
  }

  /// In the order of the text.
  package private(set) var all: [Member] = []

  package init() {}

  /// Finds the members of an object. There are no members in text that is another value.
  /// - Returns: false: the text is not JSON.
  package mutating func scan(_ text: Span<UInt8>) -> Bool {
    all.removeAll(keepingCapacity: true)
    var scanner = JSONScanner()
    let isSound = (try? scanner.members(text, to: &all)) != nil && scanner.invalidUTF8 == nil
    if !isSound { all.removeAll(keepingCapacity: true) }
    return isSound
  }

  /// The place of the value of this key.
  package func value(_ key: [UInt8], in text: Span<UInt8>) -> Int? { all.first { $0.key.equals(key, in: text) }?.value }

  /// nil: its value is no string, or there is no such key.
  package func string(_ key: [UInt8], in text: Span<UInt8>) -> String? {
    guard let start = value(key, in: text), text[start] == UInt8(ascii: "\"") else { return nil }
    var scanner = JSONScanner(position: start)
    return (try? scanner.string(text))?.string(in: text)
  }
}

extension JSONScanner {
  fileprivate mutating func members(_ text: Span<UInt8>, to all: inout [ScannedMembers.Member]) throws(JSONError) {
    if next(text) != UInt8(ascii: "{") {
      try skipValue(text, depth: 0)
    } else if try enter(text, close: UInt8(ascii: "}"), depth: 0) {
      repeat {
        let key = try key(text)
        _ = next(text)
        all.append(ScannedMembers.Member(key: key, value: position))
        try skipValue(text, depth: 1)
      } while try another(text, close: UInt8(ascii: "}"))
    }
    guard next(text) == nil else { throw failure("something follows the value") }
  }
}
