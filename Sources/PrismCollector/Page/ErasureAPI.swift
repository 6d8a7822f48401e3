import PrismHTTP
import PrismPacket
import PrismProtocol

/// Answers the API about erasing reports.
struct ErasureAPI: PageAnswers {
  let api: PageAPI

  private var runner: ErasureRunner { api.collector.access.page.erasures }

  /// `GET /erasures`: the jobs since the start of the collector, the newest last.
  func list(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    PageAPI.json(["erasures": await runner.jobs.map(\.json)])
  }

  /// `POST /erasures` with `{"device": …}` or `{"where": "FIELD=VALUE"}`.
  func begin(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try PageAPI.body(request, known: ["device": .text, "where": .text])
    let erased: Erased
    switch (body["device"]?.string, body["where"]?.string) {
    case (let device?, nil) where !device.isEmpty: erased = .device(device)
    case (nil, let text?):
      let condition: MetaCondition
      do throws(MetaCondition.Fault) { condition = try MetaCondition(erasing: text) } catch {
        throw CollectorRefusal(400, "where: \(error.reason)")
      }
      guard let value = try? ErasedValue(condition) else { throw CollectorRefusal(503, "where: can't be hashed") }
      guard !value.isDigest else { throw CollectorRefusal(400, "where: has a digest, must have the value itself") }
      erased = .field(condition, value)
    default: throw CollectorRefusal(400, "name either a device or where")
    }
    let page = api.collector.access.page
    guard
      let job = await runner.begin(
        erased, in: api.collector.store, who: request.reader?.name ?? "", { await page.forgetReports() })
    else {
      throw CollectorRefusal(409, "another erasure runs; wait for its end")
    }
    api.note(request, did: "began to erase reports", to: JSONValue.object([erased.member]).text)
    return PageAPI.json(of: job.json)
  }
}
