import PrismBase

/// Each minute says which limits are used up, and counts the reports at rest for quotas, for a twentieth of the time at most.
struct QuotaWatch: Sendable {
  private static let interval: Duration = .seconds(60)
  /// Of a count. One that takes longer leaves the one before.
  private static let budget: Duration = .seconds(1200)

  let collector: Collector

  func run() async {
    let time = collector.time
    while !Task.isCancelled {
      let began = time.uptime
      await look()
      do { try await time.sleep(for: max(Self.interval, (time.uptime - began) * 19)) } catch { return }  // it stops
    }
  }

  func look() async {
    let (log, fault, quotas) = (collector.log, "collector.quotas", collector.store.quotas)
    do throws(StoreFailure) {
      if quotas.countsReports { try await count(quotas) }
      log.faultEnded(fault, "the reports of namespaces with a quota are counted again")
    } catch {
      log.fault(
        fault, "the reports of namespaces with a quota can't be counted, so the last count stays",
        ["cause": error.description])
    }
    for figure in quotas.figures {
      note(
        figure.rows >= figure.rowsMax, "namespace \(figure.namespace)", "a namespace takes no more reports",
        "a namespace takes reports again",
        ["namespace": figure.namespace, "reports": String(figure.rows), "quota": String(figure.rowsMax)])
    }
    let limited = collector.devices.admission.limitedCount
    note(
      limited > 0, "devices", "devices sent what they may in a day, and wait for the next one",
      "no device waits for its next day", ["devices": String(limited)])
  }

  private func note(_ isFull: Bool, _ what: String, _ begin: String, _ end: String, _ fields: Logger.Fields) {
    let fault = "collector.full \(what)"
    if isFull { collector.log.fault(fault, begin, fields) } else { collector.log.faultEnded(fault, end, fields) }
  }

  private func count(_ quotas: Quotas) async throws(StoreFailure) {
    guard let store = collector.store as? any ReadStore else { return }
    let taken = try await store.readers.reports.read { try quotas.taken($0.statements) }
    let scan = ReportScan(queries: store.queries, time: collector.time)
    let (counts, reach) = try await scan.counts(
      ReportFilter(scope: .everything),
      ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime, key: .namespace), within: Self.budget)
    guard reach.since == nil else { throw .unavailable("the count took longer than \(Self.budget)") }
    quotas.note(atRest: Dictionary(counts.map { ($0.group, $0.count) }, uniquingKeysWith: +), taken: taken)
  }
}
