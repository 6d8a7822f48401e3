/// How a stored row becomes the merged meta that leaves: the daemon's own members, the session's, the report's.
///
///     {"MONITOR_TYPE":"shop-order","REPORT_ID":"…","CREATE_TIME":1732154081000,"IS_BIZ":true,CONTEXT,BODY}
///
/// Admission counts its size, the store renders it, and the view `v_meta` says the same in SQL: one place for the three.
public struct MetaSplicing: Sendable {
  /// The value of `REPORT_ID`.
  public enum ReportID {
    /// The client's, as UTF-8.
    case given(UnsafeRawBufferPointer)
    /// Made from the row's id.
    case made(RowID)
  }

  /// Prepared once for many rows of one type and context.
  private let head: [UInt8]
  private let headOfMade: [UInt8]
  private let tail: [UInt8]
  private let tailOfSelfContained: [UInt8]

  /// - Parameter context: empty where rows hold everything themselves.
  /// - Parameter epoch: the database's, which begins the ids that it makes.
  public init(monitorType: some Sequence<UInt8>, isBusiness: Bool, context: [UInt8], epoch: [UInt8] = []) {
    head = Array(#"{"MONITOR_TYPE":""#.utf8) + monitorType + Array(#"","REPORT_ID":""#.utf8)
    headOfMade = head + epoch
    tailOfSelfContained = Array(#","IS_BIZ":\#(isBusiness)"#.utf8)
    tail = context.isEmpty ? tailOfSelfContained : tailOfSelfContained + [UInt8(ascii: ",")] + context
  }

  /// - Parameter createdTime: nil where the body has a `CREATE_TIME` of its own (a crash's meta wins).
  /// - Parameter isSelfContained: the body has everything, no context is spliced in.
  public func append(
    _ id: ReportID, createdTime: Int64?, isSelfContained: Bool = false, body: UnsafeRawBufferPointer,
    to result: inout [UInt8]
  ) {
    switch id {
    case .given(let bytes):
      result.append(contentsOf: head)
      result.append(contentsOf: bytes)
    case .made(let row):
      result.append(contentsOf: headOfMade)
      row.appendReportIDSuffix(to: &result)
    }
    if let createdTime {
      result.append(word: #"","CREATE_TIME":"#)
      result.append(decimal: createdTime)
    } else {
      result.append(UInt8(ascii: "\""))
    }
    result.append(contentsOf: isSelfContained ? tailOfSelfContained : tail)
    if !body.isEmpty {
      result.append(UInt8(ascii: ","))
      result.append(contentsOf: body)
    }
    result.append(UInt8(ascii: "}"))
  }

  /// The value of `MONITOR_TYPE`: the type, `NAMESPACE-type` for business namespaces.
  public static func monitorType(_ type: ReportType, in namespace: NamespaceName) -> String {
    namespace.isBusiness ? "\(namespace)-\(type)" : type.text
  }

  /// The bytes that `append` would append.
  public static func size(
    monitorTypeBytes: Int, reportIDBytes: Int, createdTime: Int64?, isBusiness: Bool, contextBytes: Int, bodyBytes: Int
  ) -> Int {
    let fixed = #"{"MONITOR_TYPE":"","REPORT_ID":"","IS_BIZ":}"#.utf8.count + (isBusiness ? 4 : 5)
    let created = createdTime.map { #","CREATE_TIME":"#.utf8.count + decimalDigits($0) } ?? 0
    return fixed + created + monitorTypeBytes + reportIDBytes + (contextBytes > 0 ? contextBytes + 1 : 0)
      + (bodyBytes > 0 ? bodyBytes + 1 : 0)
  }

  /// Characters of a number's decimal form, a sign included.
  private static func decimalDigits(_ number: Int64) -> Int {
    var (rest, digits) = (number.magnitude, number < 0 ? 2 : 1)
    while rest >= 10 { (rest, digits) = (rest / 10, digits + 1) }
    return digits
  }
}

extension [UInt8] {
  package mutating func append(word: StaticString) { word.withUTF8Buffer { append(contentsOf: $0) } }

  package mutating func append(decimal number: Int64) {
    if number < 0 { append(UInt8(ascii: "-")) }
    append(decimal: number.magnitude)
  }

  package mutating func append(decimal number: UInt64) {
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var (rest, first) = (number, 20)
    repeat {
      first -= 1
      digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0
    digits.span.extracting(first...).withUnsafeBufferPointer { append(contentsOf: $0) }
  }
}
