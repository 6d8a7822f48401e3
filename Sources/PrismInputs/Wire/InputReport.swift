import PrismAdmission
import PrismProtocol

/// A report of another input.
struct InputReport: Sendable {
  /// Its meta begins and ends with a brace.
  let submission: Submission
  /// A report beside the record that it is made of: it is no record of its own.
  var isBesideRecord = false
}

extension SubmissionSink {
  /// Hands reports over and waits for their commit.
  /// - Parameter run: that of the reports' ids, also if some of them were handed over before; nil: they have ids of their own.
  /// - Parameter take: called once for each report, with its answer.
  func submit(
    _ reports: [InputReport], run: ReportIDRun?, _ note: SubmissionGroup.Note? = nil, userID: UInt32,
    take: (InputReport, SubmissionAnswer) -> Void
  ) async {
    let group = SubmissionGroup(reports.map(\.submission), note: note, run: run, userID: userID)
    for (report, answer) in zip(reports, await submit(group)) { take(report, answer) }
  }
}
