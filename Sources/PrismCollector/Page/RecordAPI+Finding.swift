import PrismBase
import PrismHTTP
import PrismProtocol

// Finding records.
extension RecordAPI {
  /// `GET /records`: a page of one table or of one device, by ascending server id.
  func find(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    var http = request.http
    http.query.removeAll { $0.value.isEmpty || $0.name == "field" }
    return try await find(try RecordFilter(http), where: try MetaCondition.all("field", request.http))
  }

  /// - Parameter conditions: of the fields. Rows are read until there are enough, or for `ReportScan.pageBudget`; `next` is where to
  ///   go on.
  func find(
    _ wanted: RecordFilter, where conditions: [MetaCondition]
  ) async throws(CollectorRefusal) -> HTTPResponse {
    let (store, time, started) = (api.collector.store, api.collector.time, api.collector.time.uptime)
    let read = { (filter: RecordFilter) async throws(CollectorRefusal) in
      try await api.ask { () throws(StoreFailure) in try await store.records(filter) }
    }
    if conditions.isEmpty {
      let page = try await read(wanted)
      return Collector.response(page, next: page.last?.number)
    }
    var (filter, found) = (wanted, [CollectedRecord]())
    filter.limit = RecordFilter.limitMax
    repeat {
      let page = try await read(filter)
      guard let last = page.last else { return Collector.response(found, next: nil) }
      for record in page where conditions.allSatisfy({ $0.holds(for: record.fields) }) {
        found.append(record)
        if found.count == wanted.limit { return Collector.response(found, next: record.number) }
      }
      filter.after = last.number
    } while time.uptime - started < ReportScan.pageBudget
    return Collector.response(found, next: filter.after)
  }
}
