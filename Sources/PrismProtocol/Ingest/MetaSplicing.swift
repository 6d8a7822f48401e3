/// How a stored row becomes the merged meta that leaves: the daemon's own members, the session's, the report's.
///
///     {"MONITOR_TYPE":"shop-order","REPORT_ID":"…","CREATE_TIME":1732154081000,"IS_BIZ":true,CONTEXT,BODY}
///
/// Admission counts its size, the store renders it, and the view `v_meta` says the same in SQL: one place for the three.
public enum MetaSplicing {
  /// The value of `MONITOR_TYPE`: the type, `NAMESPACE-type` for business namespaces.
  public static func monitorType(_ type: ReportType, in namespace: NamespaceName) -> String {
    namespace.isBusiness ? "\(namespace)-\(type)" : type.text
  }

  /// - Parameter createdTime: nil where the body has a `CREATE_TIME` of its own (a crash's meta wins).
  /// - Parameter context: empty for a row that holds everything itself.
  public static func append(
    monitorType: [UInt8], reportID: [UInt8], createdTime: Int64?, isBusiness: Bool, context: [UInt8],
    body: UnsafeRawBufferPointer, to result: inout [UInt8]
  ) {
    result.append(contentsOf: #"{"MONITOR_TYPE":""#.utf8)
    result.append(contentsOf: monitorType)
    result.append(contentsOf: #"","REPORT_ID":""#.utf8)
    result.append(contentsOf: reportID)
    if let createdTime {
      result.append(contentsOf: #"","CREATE_TIME":"#.utf8)
      result.append(contentsOf: String(createdTime).utf8)
      result.append(contentsOf: isBusiness ? #","IS_BIZ":true"#.utf8 : #","IS_BIZ":false"#.utf8)
    } else {
      result.append(contentsOf: isBusiness ? #"","IS_BIZ":true"#.utf8 : #"","IS_BIZ":false"#.utf8)
    }
    if !context.isEmpty {
      result.append(0x2C)
      result.append(contentsOf: context)
    }
    if !body.isEmpty {
      result.append(0x2C)
      result.append(contentsOf: body)
    }
    result.append(0x7D)
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
