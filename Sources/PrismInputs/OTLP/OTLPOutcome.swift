import PrismAdmission
import PrismProtocol

/// Counts what became of the records of a request. Pure.
struct OTLPOutcome {
  private let signal: OTLPSignal
  /// Records, or data points, that are stored.
  private(set) var taken = 0
  /// The refusals with how many records, or data points, each is for.
  private(set) var refused: [(refusal: Refusal, count: Int)] = []

  init(_ signal: OTLPSignal) { self.signal = signal }

  mutating func take(_ report: InputReport, _ answer: SubmissionAnswer) {
    // The crash of an exception is a report beside its record, and no record of its own.
    if report.isBesideRecord { return }
    guard let refusal = answer.refusal else {
      taken += 1
      return
    }
    refuse(refusal, count: signal == .metrics ? report.pointCount : 1)
  }

  mutating func refuse(_ refusal: Refusal, count: Int) {
    if let index = refused.firstIndex(where: { $0.refusal == refusal }) {
      refused[index].count += count
    } else {
      refused.append((refusal, count))
    }
  }
}

extension InputReport {
  /// Data points of a metric; 1 if it has no list of them.
  fileprivate var pointCount: Int {
    let meta = [UInt8.openBrace] + submission.members + [.closeBrace]
    guard let tree = try? JSONValue(parsing: meta, allowsDuplicateKeys: true) else { return 1 }
    return max(1, tree.object?.reduce(0) { $0 + ($1.value["dataPoints"]?.array?.count ?? 0) } ?? 0)
  }
}
