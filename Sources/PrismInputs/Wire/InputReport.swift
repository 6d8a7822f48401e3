import PrismAdmission
import PrismProtocol

/// A report of another input, and what it takes to make it again with a shorter meta.
struct InputReport: Sendable {
  let submission: Submission
  /// The members of its meta, without braces.
  let members: [UInt8]
  /// A report beside the record that it is made of: it is no record of its own.
  let isBesideRecord: Bool
  /// Bytes that the input's common information takes in the merged meta.
  private let commonBytes: Int
  private let make: @Sendable ([UInt8]) -> Submission

  init(
    members: [UInt8], commonBytes: Int, isBesideRecord: Bool = false, make: @escaping @Sendable ([UInt8]) -> Submission
  ) {
    (self.members, self.commonBytes, self.isBesideRecord, self.make) = (members, commonBytes, isBesideRecord, make)
    submission = make(members)
  }

  /// Bytes that are left for the common information of the host and the sender, by attempt.
  private static let reservedBytes = [1536, 4096, 7168]

  /// The same with its longest strings cut; nil: it can't become shorter.
  func cut(attempt: Int) -> InputReport? {
    guard attempt < Self.reservedBytes.count else { return nil }
    let bytesMax = min(Limits.metaBytesMax - Self.reservedBytes[attempt] - commonBytes, members.count - 1)
    guard bytesMax > 0, let shorter = MetaCut.cut(members, bytesMax: bytesMax) else { return nil }
    return InputReport(members: shorter, commonBytes: commonBytes, isBesideRecord: isBesideRecord, make: make)
  }
}

extension SubmissionSink {
  /// Hands reports over and waits for their commit. One with too large a meta is cut at its longest strings.
  /// - Parameter take: called once for each report, with its answer.
  func submit(
    _ reports: [InputReport], userID: UInt32, take: (InputReport, SubmissionAnswer) -> Void
  ) async {
    var (reports, attempt) = (reports, 0)
    while !reports.isEmpty {
      let answers = await submit(SubmissionGroup(reports.map(\.submission), userID: userID))
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
