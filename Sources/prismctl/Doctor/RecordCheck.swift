import PrismBase
import PrismControl
import PrismProtocol

/// Checks the records of a namespace by its status: changes that wait with no prospect, and changes that the server refused.
enum RecordCheck {
  /// - Parameter isExplained: another finding says what is wrong with the namespace.
  /// - Parameter refused: the first page of its records whose last change the server refused.
  static func findings(
    _ name: String, _ now: NamespaceReport, isExplained: Bool, refused: (String) -> [RefusedRecordReport]
  ) -> [Finding] {
    let tables = now.records.map { (name: $0.name, report: $0.value) }
    var findings = tables.filter { !$0.report.isDeclared && !now.isRetired && $0.report.waiting > 0 }.map { table in
      Finding(
        "records \(name)", .warning,
        "\("change".counted(table.report.waiting)) of the table \(table.name) can't leave: `records` does not declare it",
        advice: "declare the table again under `records` of \(name), then `prismctl reload`")
    }
    let waiting = tables.reduce(0) { $0 + $1.report.waiting + $1.report.inFlight }
    if waiting > 0, now.isHeld || now.circuitIsOpen {
      findings.append(
        QueueCheck.waiting(
          "records \(name)", of: name, now, "\("change".counted(waiting)) of records not sent",
          isExplained: isExplained, isFault: true, advice: "`prismctl explain \(name)` tells what keeps them"))
    }
    findings += store(name, now)
    if tables.contains(where: { $0.report.refused > 0 }), let first = refused(name).first {
      findings.append(
        Finding(
          "records \(name)", .warning,
          "the server refused a change of \(first.table)/\(first.id): \(first.message)",
          advice: "`prismctl dead list --namespace \(name)` lists all; a change of the record is sent again"))
    }
    return findings
  }

  /// Records that are here, and that the store at the server lacks or deleted.
  private static func store(_ name: String, _ now: NamespaceReport) -> [Finding] {
    guard let store = now.store, store.trusted != nil || now.records.contains(where: { $0.value.kept > 0 }) else {
      return []
    }
    let kept = now.records.filter { $0.value.kept > 0 }.map { "\($0.value.kept) of \($0.name)" }
    let what =
      kept.isEmpty ? "no record is missing there" : "records that it lacks are kept: " + kept.joined(separator: ", ")
    let who =
      store.trusted.map { "the store \(store.id) answers instead of \($0), and its deletions are not taken" }
      ?? "the store \(store.id) knows less than before"
    return [
      Finding(
        "store \(name)", .warning, "\(who); \(what)",
        advice: "if this is the server's store now, `prismctl accept-store \(name)`: then what it lacks is deleted here"
      )
    ]
  }
}
