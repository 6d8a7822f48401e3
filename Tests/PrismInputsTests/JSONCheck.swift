import PrismProtocol

enum JSONCheck {
  /// Members without braces as a tree. - Throws: where they are no JSON.
  @discardableResult
  static func parse(_ members: [UInt8]) throws -> JSONValue {
    try JSONValue(parsing: [0x7B] + members + [0x7D], allowsDuplicateKeys: true)
  }
}
