import PrismBase

/// Writes messages of OTLP in one of its encodings, straight from JSON text that is known to be sound.
///
/// The tables say the name, the number and the form of each field.
package struct OTLPWriter {
  /// The encoding: JSON, or protobuf.
  package let isJSON: Bool
  /// The bytes of all that was appended.
  package private(set) var bytes: [UInt8] = []

  /// - Parameter bytesCount: about as many bytes will be written.
  package init(isJSON: Bool, bytesCount: Int = 0) {
    self.isJSON = isJSON
    bytes.reserveCapacity(bytesCount)
  }

  /// Begins again.
  package mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  /// Appends fields that another writer made.
  package mutating func append(_ fields: [UInt8]) { bytes += fields }

  // MARK: Fields

  /// Begins a message: the value of a field, or an element of its list.
  /// - Returns: the parameter of `end`.
  package mutating func begin(_ field: OTLPField) -> Int {
    guard isJSON else { return beginBytes(field) }
    if field.isRepeated { separate() } else { key(field) }
    bytes.append(UInt8(ascii: "{"))
    return bytes.count
  }

  /// Ends a message.
  package mutating func end(_ start: Int) { if isJSON { bytes.append(UInt8(ascii: "}")) } else { endBytes(start) } }

  /// Begins the elements of a list. Protobuf has only these.
  package mutating func beginList(_ field: OTLPField) {
    guard isJSON else { return }
    key(field)
    bytes.append(UInt8(ascii: "["))
  }

  package mutating func endList() { if isJSON { bytes.append(UInt8(ascii: "]")) } }

  package mutating func string(_ field: OTLPField, _ text: String) {
    guard isJSON else { return data(field, text.utf8) }
    key(field)
    JSONValue.append(quoted: text, to: &bytes)
  }

  /// Appends the field of an `AnyValue` that is bytes.
  package mutating func payload(_ bytes: [UInt8]) {
    if isJSON { string(.bytesValue, Base64.encode(bytes)) } else { data(.bytesValue, bytes) }
  }

  package mutating func integer(_ field: OTLPField, _ number: Int64) {
    guard isJSON else { return self.number(field) { $0.integer(UInt64(bitPattern: number), field.form) } }
    key(field)
    if field.form.isQuoted { bytes.append(UInt8(ascii: "\"")) }
    bytes.append(decimal: number)
    if field.form.isQuoted { bytes.append(UInt8(ascii: "\"")) }
  }

  /// An element of a list of attributes.
  package mutating func attribute(_ field: OTLPField, _ name: String, _ text: String) {
    attribute(field, name) { $0.string(.stringValue, text) }
  }

  /// The same with any value.
  package mutating func attribute(_ field: OTLPField, _ name: String, _ value: (inout Self) -> Void) {
    let element = begin(field)
    string(.key, name)
    let start = begin(.value)
    value(&self)
    end(start)
    end(element)
  }

  /// The same of a member of a meta.
  package mutating func attribute(_ field: OTLPField, _ member: ScannedMembers.Member, _ text: Span<UInt8>) {
    var scanner = JSONScanner(position: member.value)
    try? attribute(field, member.key, text, &scanner)  // the text is sound
  }

  /// A JSON text as the value of a field that is an `AnyValue`.
  package mutating func anyValue(_ field: OTLPField, _ text: Span<UInt8>) {
    var scanner = JSONScanner()
    let start = begin(field)
    try? anyValue(text, &scanner)
    end(start)
  }

  /// A field from its value in OTLP's JSON.
  /// - Parameter start: the place of the value.
  package mutating func value(_ field: OTLPField, _ text: Span<UInt8>, at start: Int) {
    var scanner = JSONScanner(position: start)
    if isJSON {
      key(field)
      try? copy(text, &scanner)
    } else {
      try? transcode(field, text, &scanner, isElement: false)
    }
  }

  // MARK: Encodings

  private mutating func separate() {
    guard let last = bytes.last, last != UInt8(ascii: "{"), last != UInt8(ascii: "["), last != UInt8(ascii: ":") else {
      return
    }
    bytes.append(UInt8(ascii: ","))
  }

  private mutating func key(_ field: OTLPField) {
    separate()
    bytes.append(keyOf: field)
  }

  private mutating func quoted(_ string: ScannedString, _ text: Span<UInt8>) {
    guard !string.hasEscapes, string.isPrintable(in: text) else {
      return JSONValue.append(quoted: string.string(in: text), to: &bytes)
    }
    bytes.append(copying: text, string.range.lowerBound - 1..<string.range.upperBound + 1)
  }

  private mutating func string(_ field: OTLPField, _ string: ScannedString, _ text: Span<UInt8>) {
    if isJSON {
      key(field)
      quoted(string, text)
    } else {
      let start = beginBytes(field)
      string.append(from: text, to: &bytes)
      endBytes(start)
    }
  }

  private mutating func data(_ field: OTLPField, _ content: some Collection<UInt8>) {
    let start = beginBytes(field)
    bytes += content
    endBytes(start)
  }

  /// Begins what has its length in front of it. One byte is left for it.
  private mutating func beginBytes(_ field: OTLPField) -> Int {
    bytes.append(varint: UInt64(field.number << 3 | 2))
    bytes.append(0)
    return bytes.count
  }

  private mutating func endBytes(_ start: Int) {
    let count = bytes.count - start
    guard count >= 0x80 else {
      bytes[start - 1] = UInt8(count)
      return
    }
    // A longer length moves what it is of.
    let more = (UInt64.bitWidth - count.leadingZeroBitCount + 6) / 7 - 1
    bytes.append(contentsOf: repeatElement(0, count: more))
    bytes.withUnsafeMutableBytes { bytes in
      let content = bytes.baseAddress! + start
      (content + more).copyMemory(from: content, byteCount: count)
      for index in 0...more {
        bytes[start - 1 + index] = UInt8(truncatingIfNeeded: count >> (7 * index)) & 0x7F | (index < more ? 0x80 : 0)
      }
    }
  }

  /// - Parameter write: false: it is no number of this form, and is left out.
  private mutating func number(_ field: OTLPField, _ write: (inout Self) -> Bool) {
    let start = bytes.count
    bytes.append(varint: UInt64(field.number << 3 | field.form.wireType))
    if !write(&self) { bytes.removeSubrange(start...) }
  }

  private mutating func integer(_ number: UInt64, _ form: OTLPField.Form) -> Bool {
    switch form {
    case .varint32, .unsigned32, .signed64, .unsigned64: bytes.append(varint: number)
    case .zigzag32: bytes.append(varint: number << 1 ^ UInt64(bitPattern: Int64(bitPattern: number) >> 63))
    case .fixed32: fixed(number, 4)
    case .fixed64, .signedFixed64: fixed(number, 8)
    default: return false
    }
    return true
  }

  private mutating func fixed(_ number: UInt64, _ count: Int) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0.prefix(count)) }
  }

  private mutating func attribute(
    _ field: OTLPField, _ name: ScannedString, _ text: Span<UInt8>, _ scanner: inout JSONScanner
  ) throws(JSONError) {
    let element = begin(field)
    string(.key, name, text)
    let start = begin(.value)
    try anyValue(text, &scanner)
    end(start)
    end(element)
  }

  /// Any value of JSON as the fields of an `AnyValue`.
  private mutating func anyValue(_ text: Span<UInt8>, _ scanner: inout JSONScanner) throws(JSONError) {
    let first = scanner.next(text)
    switch first {
    case UInt8(ascii: "\""): string(.stringValue, try scanner.string(text), text)
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let isObject = first == UInt8(ascii: "{")
      let (close, list): (UInt8, OTLPField) =
        isObject ? (UInt8(ascii: "}"), .members) : (UInt8(ascii: "]"), .elements)
      let start = begin(isObject ? .kvlistValue : .arrayValue)
      beginList(list)
      if try scanner.enter(text, close: close, depth: 0) {
        repeat {
          if isObject {
            try attribute(list, try scanner.key(text), text, &scanner)
          } else {
            let element = begin(list)
            try anyValue(text, &scanner)
            end(element)
          }
        } while try scanner.another(text, close: close)
      }
      endList()
      end(start)
    default:
      let start = scanner.position
      try scanner.skipValue(text, depth: 0)
      let range = start..<scanner.position
      switch first {
      case UInt8(ascii: "n"): break
      case UInt8(ascii: "t"), UInt8(ascii: "f"): scalar(.boolValue, text, range)
      default:
        let number = text.integer(range).flatMap { Int64(exactly: $0) }
        if let number { integer(.intValue, number) } else { scalar(.doubleValue, text, range) }
      }
    }
  }

  private mutating func scalar(_ field: OTLPField, _ text: Span<UInt8>, _ range: Range<Int>) {
    guard isJSON else { return number(field) { $0.number(field.form, text, range) } }
    key(field)
    bytes.append(copying: text, range)
  }

  /// The same JSON in the form that `JSONValue` has.
  private mutating func copy(_ text: Span<UInt8>, _ scanner: inout JSONScanner) throws(JSONError) {
    let first = scanner.next(text)
    let start = scanner.position
    switch first {
    case UInt8(ascii: "\""): quoted(try scanner.string(text), text)
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let isObject = first == UInt8(ascii: "{")
      let close = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
      bytes.append(copying: text, start..<start + 1)
      if try scanner.enter(text, close: close, depth: 0) {
        repeat {
          separate()
          if isObject {
            quoted(try scanner.key(text), text)
            bytes.append(UInt8(ascii: ":"))
          }
          try copy(text, &scanner)
        } while try scanner.another(text, close: close)
      }
      bytes.append(close)
    default:
      try scanner.skipValue(text, depth: 0)
      bytes.append(copying: text, start..<scanner.position)
    }
  }

  /// A value of OTLP's JSON as a field of protobuf. One that has not the field's form is left out, as a reader of protobuf
  /// leaves out unknown fields. Numbers of a list are packed, as proto3 has them.
  private mutating func transcode(
    _ field: OTLPField, _ text: Span<UInt8>, _ scanner: inout JSONScanner, isElement: Bool
  ) throws(JSONError) {
    let first = scanner.next(text)
    let (place, start) = (scanner.position, bytes.count)
    switch (field.form, first) {
    case (_, UInt8(ascii: "[")) where field.isRepeated && !isElement:
      let packed = field.form.wireType == 2 ? nil : beginBytes(field)
      if try scanner.enter(text, close: UInt8(ascii: "]"), depth: 0) {
        repeat {
          try transcode(field, text, &scanner, isElement: true)
        } while try scanner.another(text, close: UInt8(ascii: "]"))
      }
      guard let packed else { return }
      if bytes.count == packed { bytes.removeSubrange(start...) } else { endBytes(packed) }
    case (_, _) where field.isRepeated && !isElement: try scanner.skipValue(text, depth: 0)
    case (.message(let message), UInt8(ascii: "{")):
      let inner = beginBytes(field)
      if try scanner.enter(text, close: UInt8(ascii: "}"), depth: 0) {
        repeat {
          if let field = message.field(try scanner.key(text), in: text) {
            try transcode(field, text, &scanner, isElement: false)
          } else {
            try scanner.skipValue(text, depth: 0)
          }
        } while try scanner.another(text, close: UInt8(ascii: "}"))
      }
      endBytes(inner)
    case (.string, UInt8(ascii: "\"")): string(field, try scanner.string(text), text)
    case (.base64, UInt8(ascii: "\"")), (.hexadecimal, UInt8(ascii: "\"")):
      let digits = try scanner.string(text).decoded(text)
      let content = if case .base64 = field.form { Base64.decode(digits) } else { Hex.decode(digits) }
      if let content { data(field, content) }
    default:
      try scanner.skipValue(text, depth: 0)
      let range = place..<scanner.position
      if isElement { _ = number(field.form, text, range) } else { scalar(field, text, range) }
    }
  }

  /// A scalar of JSON as a number without its tag.
  /// - Returns: false: it is no number of this form.
  private mutating func number(_ form: OTLPField.Form, _ text: Span<UInt8>, _ range: Range<Int>) -> Bool {
    let first = text[range.lowerBound]
    var scanner = JSONScanner(position: range.lowerBound)
    switch form {
    case .bool:
      guard first == UInt8(ascii: "t") || first == UInt8(ascii: "f") else { return false }
      return integer(first == UInt8(ascii: "t") ? 1 : 0, .varint32)
    case _ where first == UInt8(ascii: "\""):
      // 64 bits are strings, and words are what is no number.
      guard let digits = try? scanner.string(text).decoded(text) else { return false }
      return number(form, digits.span, isWord: true)
    case _ where first == UInt8(ascii: "-") || first &- UInt8(ascii: "0") < 10:
      return number(form, text.extracting(range), isWord: false)
    default: return false
    }
  }

  private static let words: [String: Double] = ["NaN": .nan, "Infinity": .infinity, "-Infinity": -.infinity]

  private mutating func number(_ form: OTLPField.Form, _ digits: Span<UInt8>, isWord: Bool) -> Bool {
    guard case .double = form else {
      return digits.integer(0..<digits.count).map { integer(UInt64(truncatingIfNeeded: $0), form) } ?? false
    }
    let text = digits.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    guard let number = isWord ? Self.words[text] ?? Double(text) : Double(text) else { return false }
    fixed(number.bitPattern, 8)
    return true
  }
}
