import PrismProtocol

/// How reports are exported.
enum ExportFormat: String, Sendable, CaseIterable {
  case ndjson, csv

  var contentType: String { self == .csv ? "text/csv; charset=utf-8" : "application/x-ndjson" }

  /// The first line of the file.
  var head: [UInt8] {
    guard self == .csv else { return [] }
    return Array(
      "id,device,namespace,kind,type,reportId,createdTime,receivedTime,packetId,chainBroken,payloadBytes,meta\r\n".utf8)
  }

  func line(_ report: StoredReport) -> [UInt8] {
    self == .csv ? Self.row(report) : report.jsonText + [UInt8(ascii: "\n")]
  }

  /// RFC 4180.
  private static func row(_ report: StoredReport) -> [UInt8] {
    let meta = String(decoding: report.meta, as: UTF8.self)
    let fields = [
      String(report.id), quoted(report.device), quoted(report.namespace), quoted(report.kind), quoted(report.type),
      quoted(report.reportID), report.createdTime.map { String($0) } ?? "", String(report.receivedTime),
      quoted(report.packetID), String(report.chainIsBroken), report.payloadBytes.map { String($0) } ?? "", quoted(meta),
    ]
    return Array((fields.joined(separator: ",") + "\r\n").utf8)
  }

  /// A table program takes a text that begins like this for a formula, which can send what is in the table elsewhere. An
  /// apostrophe in front makes it a text.
  private static let formulaSigns: Set<Unicode.Scalar> = [
    "=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠",
  ]

  static func quoted(_ text: String) -> String {
    let isFormula = text.unicodeScalars.first.map { formulaSigns.contains($0) } ?? false
    var quoted = isFormula ? "\"'" : "\""
    for scalar in text.unicodeScalars {
      if scalar == "\"" { quoted.unicodeScalars.append("\"") }
      quoted.unicodeScalars.append(scalar)
    }
    return quoted + "\""
  }
}
