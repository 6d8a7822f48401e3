/// The path of a function at the begin of a name of Swift's (`$s`): the module, types, and the function. Its type and
/// how it was specialized are left out. Names of the standard library stay as they are.
struct SwiftName {
  private static let wordsMax = 26

  private let bytes: [UInt8]
  private var at: Int
  private var words: [[UInt8]] = []

  /// - Returns: nil: it is not such a name, or begins in another form.
  static func path(_ name: Substring) -> String? {
    guard let start = ["$s", "_$s", "$S", "_$S"].first(where: { name.hasPrefix($0) }) else { return nil }
    var reader = SwiftName(bytes: Array(name.utf8), at: start.utf8.count)
    var parts: [String] = []
    while let part = reader.identifier() {
      parts.append(part)
      // Class, structure, enumeration, protocol: one more name is within it.
      let isType = reader.at < reader.bytes.count && "VCOP".utf8.contains(reader.bytes[reader.at])
      if parts.count > 1 {
        guard isType else { break }
        reader.at += 1
      }
    }
    return parts.count > 1 ? parts.joined(separator: ".") : nil
  }

  private init(bytes: [UInt8], at: Int) { (self.bytes, self.at) = (bytes, at) }

  private func isLetter(_ first: Unicode.Scalar, _ last: Unicode.Scalar) -> Bool {
    at < bytes.count && (UInt8(ascii: first)...UInt8(ascii: last)).contains(bytes[at])
  }

  /// `4shop`; with words of names before it in its place, `0A4Cart`: the last such word is in upper case.
  private mutating func identifier() -> String? {
    guard isLetter("0", "9") else { return nil }
    var name: [UInt8] = []
    if bytes[at] == UInt8(ascii: "0") {
      at += 1
      guard isLetter("a", "z") || isLetter("A", "Z") else { return nil }
      var isLast = false
      while !isLast {
        guard isLetter("a", "z") || isLetter("A", "Z") else { break }
        isLast = isLetter("A", "Z")
        let word = Int(bytes[at] | UInt8(ascii: " ")) - Int(UInt8(ascii: "a"))
        guard words.indices.contains(word) else { return nil }
        name += words[word]
        at += 1
      }
      if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
        at += 1
        return String(decoding: name, as: UTF8.self)
      }
    }
    guard let literal = literal() else { return name.isEmpty ? nil : String(decoding: name, as: UTF8.self) }
    note(literal)
    return String(decoding: name + literal, as: UTF8.self)
  }

  private mutating func literal() -> [UInt8]? {
    var length = 0
    let start = at
    while isLetter("0", "9"), length <= bytes.count {
      length = length * 10 + Int(bytes[at] - UInt8(ascii: "0"))
      at += 1
    }
    guard at > start, length > 0, length <= bytes.count - at else { return nil }
    defer { at += length }
    return Array(bytes[at..<at + length])
  }

  /// Words begin with an upper-case letter, or the first letter, and have two letters or more.
  private mutating func note(_ name: [UInt8]) {
    let isUpper = { (byte: UInt8) in (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }
    let isWordByte = { (byte: UInt8) in byte != UInt8(ascii: "_") && byte != 0 }
    var start: Int?
    for place in 0...name.count {
      if let first = start {
        let isEnd =
          place == name.count || !isWordByte(name[place]) || !isUpper(name[place - 1]) && isUpper(name[place])
        guard isEnd else { continue }
        if place - first >= 2, words.count < Self.wordsMax { words.append(Array(name[first..<place])) }
        start = nil
      }
      if place < name.count, isWordByte(name[place]), !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(name[place]) {
        start = place
      }
    }
  }
}
