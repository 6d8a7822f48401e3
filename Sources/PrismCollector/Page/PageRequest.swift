import PrismHTTP

/// A request of the API: its route matched, its reader known.
struct PageRequest: Sendable {
  let http: HTTPRequest
  /// The values of the parts of the path that the route names in braces.
  let parts: [String]
  /// nil: not signed in, on a route for everybody.
  let reader: ReaderIdentity?

  /// The whole number of a parameter. - Throws: 400 outside of `range`.
  func number<Value: FixedWidthInteger>(
    _ name: String, in range: ClosedRange<Value>
  ) throws(CollectorRefusal) -> Value? {
    guard let text = http.parameter(name), !text.isEmpty else { return nil }
    guard let value = Value(text), range.contains(value) else {
      throw CollectorRefusal(
        400,
        "\(name): is `\(text.prefix(32))`, must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// One word of a parameter. - Throws: 400 for another word.
  func word<Word: RawRepresentable & CaseIterable>(
    _ name: String, _ words: Word.Type
  ) throws(CollectorRefusal) -> Word? where Word.RawValue == String {
    guard let text = http.parameter(name), !text.isEmpty else { return nil }
    guard let word = Word(rawValue: text) else {
      let known = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw CollectorRefusal(400, "\(name): is `\(text.prefix(32))`, must be one of \(known)")
    }
    return word
  }
}
