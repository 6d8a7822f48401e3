/// A condition on one field of a report's meta: `ms >= 100`, `net.code != 200`, `"http.route" ~ /cart`, `stack`.
///
/// Numbers are compared with numbers, texts with texts, byte by byte. `=` and `~` never hold for a field that is missing,
/// nor does `!=`. A path goes through maps only.
package struct MetaCondition: Sendable, Equatable {
  package enum Comparison: String, Sendable, CaseIterable {
    /// The field is there; it may be null.
    case exists = ""
    case equal = "="
    case notEqual = "!="
    case less = "<"
    case atMost = "<="
    case more = ">"
    case atLeast = ">="
    /// The field is a text that contains the value.
    case contains = "~"

    /// The one whose sign a text begins with; nil: it begins with no sign.
    package static func at(_ text: Scalars) -> Comparison? {
      allCases.filter { $0 != .exists && text.starts(with: $0.rawValue.unicodeScalars) }
        .max { $0.rawValue.count < $1.rawValue.count }
    }

    /// Whether it holds for two values; `exists` always does.
    package func holds<Value: Comparable>(_ given: Value, _ wanted: Value) -> Bool {
      switch self {
      case .equal: given == wanted
      case .notEqual: given != wanted
      case .less: given < wanted
      case .atMost: given <= wanted
      case .more: given > wanted
      case .atLeast: given >= wanted
      case .exists, .contains: true
      }
    }
  }

  /// A text sign by sign: as Characters, an accent at the begin of a value would belong to the sign before it.
  package typealias Scalars = Substring.UnicodeScalarView

  /// The fault of a condition's text, in words.
  package struct Fault: Error, Equatable {
    package let reason: String
    package init(reason: String) { self.reason = reason }
  }

  /// Of one question.
  package static let countMax = 8
  package static let pathMax = 8
  static let valueBytesMax = 1024
  private static let partBytesMax = 128

  /// Keys, from the outermost map on.
  package let path: [String]
  package let comparison: Comparison
  /// Empty for `exists`.
  package let value: String

  /// Reads `PATH`, or `PATH OP VALUE`. A key with a dot or another sign in it is written in quotes.
  package init(_ text: String) throws(Fault) {
    var rest = text[...].unicodeScalars
    path = try Self.path(&rest)
    Self.skipSpaces(&rest)
    comparison = Comparison.at(rest) ?? .exists
    rest = rest.dropFirst(comparison.rawValue.count)
    Self.skipSpaces(&rest)
    guard comparison != .exists || rest.isEmpty else {
      throw Fault(reason: "needs one of = != < <= > >= ~ behind its key")
    }
    // `==`, `< =`: the value would be found nowhere.
    guard comparison == .contains || rest.first != "=" else {
      throw Fault(reason: "needs one of = != < <= > >= ~ behind its key: its value begins with =")
    }
    guard !rest.isEmpty || [.exists, .equal, .notEqual].contains(comparison) else {
      throw Fault(reason: "has no value behind \(comparison.rawValue)")
    }
    while rest.last == " " { rest = rest.dropLast() }
    value = String(Substring(rest))
    guard value.utf8.count <= Self.valueBytesMax, !value.utf8.contains(0) else {
      throw Fault(reason: "has a value of over \(Self.valueBytesMax) bytes, or with a zero byte")
    }
  }

  /// Reads `PATH = VALUE`: which reports are erased.
  package init(erasing text: String) throws(Fault) {
    try self.init(text)
    guard comparison == .equal, !value.isEmpty else { throw Fault(reason: "must be FIELD=VALUE") }
  }

  private static func skipSpaces(_ rest: inout Scalars) { rest = rest.drop { $0 == " " } }

  private static func path(_ rest: inout Scalars) throws(Fault) -> [String] {
    var path: [String] = []
    repeat {
      if !path.isEmpty { rest.removeFirst() }
      skipSpaces(&rest)
      path.append(try part(&rest))
    } while rest.first == "."
    guard path.count <= pathMax else { throw Fault(reason: "has over \(pathMax) keys in its path") }
    return path
  }

  /// A path as a condition writes it.
  package static func text(of path: [String]) -> String {
    path.map { part in
      part.isEmpty || part.unicodeScalars.contains(where: isSign) ? "\"\(part)\"" : part
    }.joined(separator: ".")
  }

  /// It ends a key that has no quotes.
  private static func isSign(_ scalar: Unicode.Scalar) -> Bool { "=!<>~. \"".unicodeScalars.contains(scalar) }

  private static func part(_ rest: inout Scalars) throws(Fault) -> String {
    let isQuoted = rest.first == "\""
    if isQuoted { rest = rest.dropFirst() }
    let part = Substring(rest.prefix { isQuoted ? $0 != "\"" : !isSign($0) })
    rest = rest[part.endIndex...]
    if isQuoted {
      guard rest.first == "\"" else { throw Fault(reason: "lacks the second quote of a key") }
      rest = rest.dropFirst()
    }
    guard (1...partBytesMax).contains(part.utf8.count),
      part.utf8.allSatisfy({ $0 >= UInt8(ascii: " ") && $0 != UInt8(ascii: "\\") })
    else { throw Fault(reason: "needs keys of 1 to \(partBytesMax) bytes without \\ and control characters") }
    return String(part)
  }

  /// The value as a number, if it is one that can be compared: finite as a `Double`. Others are texts, as digests like `12e4567`.
  package var number: String? {
    guard case .number(let text)? = try? JSONValue(parsing: Array(value.utf8)), Double(text)?.isFinite == true else {
      return nil
    }
    return text
  }
}
