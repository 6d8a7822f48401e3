import PrismHTTP
import PrismProtocol

// Outputs and their dead letters.
extension PageAPI {
  func outputs(_ now: Int64) async -> JSONValue {
    let outputs = await OutputRunner.figures(of: collector.outputs).map { (name, figures) -> JSONValue in
      let lag = figures.waitingSince.map { max(0, now - $0) / 1000 }
      return [
        "name": .string(name), "leading": .bool(figures.isLeading), "delivered": .int(figures.delivered),
        "refused": .int(figures.refused), "dead": .int(figures.dead), "failures": .int(figures.failures),
        "holds": figures.holds.map { .string($0) } ?? .null,
        "lagSeconds": figures.isLeading ? .int(lag ?? 0) : .null,
      ]
    }
    return .array(outputs)
  }

  /// `GET /outputs/{name}/dead`
  func deadLetters(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let after = try request.number("after", in: 0...Int64.max) ?? 0
    let source = try source(of: request)
    let dead = try await ask { () throws(StoreFailure) in
      try await source.dead(after: after, limit: limit, onlyRequeued: false)
    }
    await source.close()
    return Self.json([
      "dead": .array(dead.map(\.json)), "next": dead.count == limit ? dead.last.map { .int($0.id) } ?? .null : .null,
    ])
  }

  /// `POST /outputs/{name}/dead` with `{"action": "requeue"}` or `{"action": "drop"}`, for the ids of `first` to `last`.
  func changeDeadLetters(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try Self.body(request, known: ["action", "first", "last"])
    guard let change = body["action"]?.string.flatMap({ DeadChange(rawValue: $0) }) else {
      throw CollectorRefusal(400, "action: must be requeue or drop")
    }
    let (first, last) = (try Self.id(body, "first") ?? 0, try Self.id(body, "last") ?? .max)
    guard first <= last else { throw CollectorRefusal(400, "first: is \(first), must be at most `last`, \(last)") }
    let source = try source(of: request)
    let count = try await ask { () throws(StoreFailure) in try await source.change(dead: first...last, change) }
    await source.close()
    note(
      request.reader, did: "dead letters of an output: \(change.rawValue)", to: "\(request.parts[0]), \(count) reports",
      from: request.http)
    return Self.json(["changed": .int(count)])
  }

  /// nil: the member is missing. Another value than a number must not stand for all dead letters.
  private static func id(_ body: JSONValue, _ name: String) throws(CollectorRefusal) -> Int64? {
    guard let value = body[name] else { return nil }
    guard let id = value.int, id >= 0 else { throw CollectorRefusal(400, "\(name): must be the id of a report") }
    return Int64(id)
  }

  private func source(of request: PageRequest) throws(CollectorRefusal) -> any OutputSource {
    guard collector.outputs.contains(where: { $0.name == request.parts[0] }) else {
      let names = collector.outputs.map(\.name).joined(separator: ", ")
      throw CollectorRefusal(404, "there is no output of this name; there are: \(names.isEmpty ? "none" : names)")
    }
    return collector.store.outputSource(request.parts[0])
  }
}
