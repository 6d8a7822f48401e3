import PrismHTTP
import PrismProtocol

/// Answers the API about erasing reports.
struct ErasureAPI: PageAnswers {
  let api: PageAPI

  private var desk: ErasureDesk { api.collector.access.page.erasures }

  /// `GET /erasures`: the jobs since the start of the collector, the newest last.
  func list(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    PageAPI.json(["erasures": await desk.jobs.map(\.json)])
  }

  /// `POST /erasures` with `{"device": …}` or `{"where": "FIELD=VALUE"}`.
  func begin(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try PageAPI.body(request, known: ["device", "where"])
    let erased: Erased
    switch (body["device"]?.string, body["where"]?.string) {
    case (let device?, nil) where !device.isEmpty: erased = .device(device)
    case (nil, let text?):
      do throws(MetaCondition.Fault) { erased = .field(try MetaCondition(erasing: text), text: text) } catch {
        throw CollectorRefusal(400, "where: \(error.reason)")
      }
    default: throw CollectorRefusal(400, "name either a device or where")
    }
    guard let job = await desk.begin(erased, in: api.collector.store, who: request.reader?.name ?? "") else {
      throw CollectorRefusal(409, "another erasure runs; wait for its end")
    }
    api.note(request, did: "began to erase reports", to: body.text)
    return PageAPI.json(of: job.json)
  }
}
