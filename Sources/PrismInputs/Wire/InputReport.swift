import PrismAdmission
import PrismProtocol

/// A report of another input, and what it takes to make it again with a shorter meta.
struct InputReport: Sendable {
  /// Its meta begins and ends with a brace.
  let submission: Submission
  /// Bytes that the input's common information takes in the merged meta.
  let commonBytes: Int
  /// A report beside the record that it is made of: it is no record of its own.
  var isBesideRecord = false

  /// Bytes that are left for the common information of the host and the sender, by attempt.
  private static let reservedBytes = [1536, 4096, 7168]

  /// The same with its longest strings cut; nil: it can't become shorter.
  func cut(attempt: Int) -> InputReport? {
    guard attempt < Self.reservedBytes.count else { return nil }
    let members = [UInt8](submission.members)
    let bytesMax = min(Limits.metaBytesMax - Self.reservedBytes[attempt] - commonBytes, members.count - 1)
    guard bytesMax > 0, let shorter = MetaCut.cut(members, bytesMax: bytesMax) else { return nil }
    return InputReport(
      submission: submission.replacing(members: shorter), commonBytes: commonBytes, isBesideRecord: isBesideRecord)
  }
}

extension SubmissionSink {
  /// Hands reports over and waits for their commit. One with too large a meta is cut at its longest strings.
  /// - Parameter take: called once for each report, with its answer.
  /// - Parameter run: that of the reports' ids, also if some of them were handed over before; nil: they have ids of their own.
  func submit(
    _ reports: [InputReport], run: ReportIDRun?, _ note: SubmissionGroup.Note? = nil, userID: UInt32,
    take: (InputReport, SubmissionAnswer) -> Void
  ) async {
    var (reports, attempt) = (reports, 0)
    while !reports.isEmpty {
      let answers = await submit(SubmissionGroup(reports.map(\.submission), note: note, run: run, userID: userID))
      var cut: [InputReport] = []
      for (report, answer) in zip(reports, answers) {
        if answer.refusal?.code == .metaTooLarge, let shorter = report.cut(attempt: attempt) {
          cut.append(shorter)
        } else {
          take(report, answer)
        }
      }
      (reports, attempt) = (cut, attempt + 1)
    }
  }
}
