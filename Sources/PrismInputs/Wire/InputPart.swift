import PrismAdmission
import PrismProtocol

/// Reports of another input that one commit takes.
struct InputPart {
  /// The most of a part. One report may go past the bytes.
  static let reportsMax = 1000, bytesMax = 512 * 1024
  /// Fewer reports are known one by one.
  static let runMin = 32

  private(set) var reports: [InputReport] = []
  /// nil: each report is known by its own id, or is not known.
  var run: ReportIDRun?
  private var bytes = 0

  /// Some report has an id.
  var isIdentified: Bool { run != nil || reports.contains { $0.submission.isIdentified } }

  var isFull: Bool { reports.count >= Self.reportsMax || bytes >= Self.bytesMax }

  /// - Parameter bytes: of what the report is made of, so that what comes again makes the same parts under any configuration.
  mutating func append(_ report: InputReport, bytes: Int) {
    reports.append(report)
    self.bytes += bytes
  }
}
