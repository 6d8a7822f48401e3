import PrismHTTP
import PrismProtocol

// Records of devices.
extension PageAPI {
  /// `GET /records`: a page of one table or of one device, by ascending server id.
  func records(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    var http = request.http
    http.query.removeAll { $0.value.isEmpty }
    let filter = try RecordFilter(http)
    let store = collector.store
    let page = try await ask { () throws(StoreFailure) in try await store.records(filter) }
    return Collector.response(page)
  }
}
