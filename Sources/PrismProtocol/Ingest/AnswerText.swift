/// The answers of the ingest protocol as bytes, each a line with its line feed (docs/ingest-protocol.md).
public enum AnswerText {
  /// - Parameter isPayloadLeftOut: the report came with a payload, which is not stored.
  /// - Parameter appendReportID: appends the report's id.
  /// - Parameter isCollapsed: it was counted on the row of an equal report, whose id it is.
  public static func appendStored(
    isDuplicate: Bool = false, isCollapsed: Bool = false, isPayloadLeftOut: Bool = false, to result: inout [UInt8],
    appendReportID: (inout [UInt8]) -> Void
  ) {
    result.append(contentsOf: #"{"status":"stored","reportId":""#.utf8)
    appendReportID(&result)
    result.append(UInt8(ascii: "\""))
    if isDuplicate { result.append(contentsOf: #","duplicate":true"#.utf8) }
    if isCollapsed { result.append(contentsOf: #","collapsed":true"#.utf8) }
    if isPayloadLeftOut { result.append(contentsOf: #","payloadLeftOut":true"#.utf8) }
    result.append(contentsOf: "}\n".utf8)
  }

  /// The answer to a report that its type's `sample` leaves out.
  public static let sampled = Array("{\"status\":\"sampled\"}\n".utf8)

  /// The answer to a refused report.
  public static func refused(_ refusal: Refusal) -> [UInt8] {
    var result = Array(#"{"status":"refused","#.utf8)
    appendMembers(of: refusal, to: &result)
    result.append(contentsOf: "}\n".utf8)
    return result
  }

  /// - Parameter count: reports of this connection that have been dealt with.
  /// - Parameter refused: those among the newly covered that were refused, by their number on this connection, from 1.
  /// - Parameter sampledOut: how many among the newly covered were left out by `sample`.
  public static func appendAcked(
    _ count: Int, refused: [(sequence: Int, refusal: Refusal)], sampledOut: Int = 0, to result: inout [UInt8]
  ) {
    result.append(contentsOf: #"{"acked":"#.utf8)
    result.append(contentsOf: String(count).utf8)
    if sampledOut > 0 { result.append(contentsOf: ",\"sampled\":\(sampledOut)".utf8) }
    for (index, item) in refused.enumerated() {
      result.append(contentsOf: index == 0 ? #","refused":["#.utf8 : ",".utf8)
      result.append(contentsOf: #"{"seq":"#.utf8)
      result.append(contentsOf: String(item.sequence).utf8)
      result.append(UInt8(ascii: ","))
      appendMembers(of: item.refusal, to: &result)
      result.append(UInt8(ascii: "}"))
    }
    result.append(contentsOf: refused.isEmpty ? "}\n".utf8 : "]}\n".utf8)
  }

  private static func appendMembers(of refusal: Refusal, to result: inout [UInt8]) {
    result.append(contentsOf: #""code":""#.utf8)
    result.append(contentsOf: refusal.code.rawValue.utf8)
    result.append(contentsOf: #"","message":"#.utf8)
    JSONValue.append(quoted: refusal.message, to: &result)
    if let retry = refusal.retryMilliseconds {
      result.append(contentsOf: #","retryMs":"#.utf8)
      result.append(contentsOf: String(retry).utf8)
    }
  }

  /// The answer to a greeting: version and limits.
  public static func hello(version: String, payloadBytesMax: Int) -> [UInt8] {
    let greeting: JSONValue = [
      "hello": ["server": "prismd", "version": .string(version), "limits": limits(payloadBytesMax: payloadBytesMax)]
    ]
    return greeting.bytes + [UInt8(ascii: "\n")]
  }

  /// - Parameter payloadBytesMax: of the namespace that takes the largest.
  public static func limits(payloadBytesMax: Int) -> JSONValue {
    ["metaByte": .int(Limits.metaBytesMax), "payloadByte": .int(payloadBytesMax)]
  }

  /// The answer to the question `isGather`.
  public static func isGather(_ gathers: Bool) -> [UInt8] {
    Array("{\"isGather\":\(gathers)}\n".utf8)
  }

  /// The switches of a namespace, for a connection that watches it.
  public static func switches(_ switches: NamespaceSwitches, isChange: Bool) -> [UInt8] {
    JSONValue.object([.init(isChange ? "changed" : "watch", switches.json)]).bytes + [UInt8(ascii: "\n")]
  }

  /// - Parameter members: of the common information, without braces.
  public static func common(_ members: [UInt8]) -> [UInt8] {
    Array(#"{"common":{"#.utf8) + members + Array("}}\n".utf8)
  }
}
