import PrismBase
import PrismOutputs
import PrismProtocol

enum ExportFormat: String, Sendable, CaseIterable {
  case ndjson, csv

  var contentType: String { self == .csv ? "text/csv; charset=utf-8" : "application/x-ndjson" }
}

/// Writes reports as lines of a file. A file of CSV has a column for each field that one of its reports has, so all of them are
/// noted first.
struct ExportLines {
  static let columnsMax = 1000

  private static let ofReports =
    "id,device,namespace,kind,type,reportId,createdTime,receivedTime,packetId,chainBroken,payloadBytes"

  let format: ExportFormat
  /// By path, in the order of the paths.
  private var columns: [[ExactText]: Int] = [:]
  private var paths: [[ExactText]] = []
  /// Whether its reports have more fields than a file may have columns.
  var isOver: Bool { columns.count > Self.columnsMax }
  static let overCause = "the reports have over \(columnsMax) different fields: choose a type, or ndjson"

  init(_ format: ExportFormat) { self.format = format }

  // MARK: Columns

  mutating func note(_ reports: [StoredReport]) {
    for report in reports where !isOver {
      Self.forEachField(of: report) { path, _ in columns[path.map(ExactText.init)] = 0 }
    }
  }

  /// The first line of the file, once all reports are noted.
  mutating func head() -> [UInt8] {
    guard format == .csv else { return [] }
    paths = columns.keys.sorted { $0.lexicographicallyPrecedes($1) }
    for (place, path) in paths.enumerated() { columns[path] = place }
    let names = paths.map { "," + Self.quoted("meta." + MetaCondition.text(of: $0.map(\.text))) }
    return Array((Self.ofReports + names.joined() + "\r\n").utf8)
  }

  func line(_ report: StoredReport) -> [UInt8] {
    format == .csv ? row(report) : report.jsonText + [UInt8(ascii: "\n")]
  }

  /// RFC 4180.
  private func row(_ report: StoredReport) -> [UInt8] {
    var values = [String](repeating: "", count: paths.count)
    Self.forEachField(of: report) { path, value in
      if let place = columns[path.map(ExactText.init)] { values[place] = Self.cell(value) }
    }
    let fields = [
      String(report.id), Self.quoted(report.device), Self.quoted(report.namespace), Self.quoted(report.kind),
      Self.quoted(report.type), Self.quoted(report.reportID), report.createdTime.map { String($0) } ?? "",
      String(report.receivedTime), Self.quoted(report.packetID), String(report.chainIsBroken),
      report.payloadBytes.map { String($0) } ?? "",
    ]
    return Array(((fields + values).joined(separator: ",") + "\r\n").utf8)
  }

  /// The values of a meta that are no maps; maps that lie deeper than a condition can ask for are such values, too.
  private static func forEachField(of report: StoredReport, _ take: ([String], JSONValue) -> Void) {
    func visit(_ members: [JSONValue.Member], _ path: [String]) {
      for member in members {
        let path = path + [member.key]
        if path.count < MetaCondition.pathMax, let inner = member.value.object, !inner.isEmpty {
          visit(inner, path)
        } else {
          take(path, member.value)
        }
      }
    }
    visit((try? JSONValue(parsing: report.meta))?.object ?? [], [])
  }

  // MARK: Cells

  private static func cell(_ value: JSONValue) -> String {
    switch value {
    case .null: ""
    case .bool, .number: value.text
    case .string(let text): quoted(text)
    case .array, .object: quoted(value.text)
    }
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
