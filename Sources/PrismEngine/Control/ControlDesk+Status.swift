import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

// `prismctl status --json`; keys are only ever added (docs/control-protocol.md).
extension ControlDesk {
  func status() async throws(Refused) -> JSONValue {
    let parts = engine.parts
    let network = parts.network.current
    let queues = try await queues()
    var namespaces: [JSONValue.Member] = []
    for (namespace, pipeline) in await engine.pipelines.sorted(by: { $0.key < $1.key }) {
      namespaces.append(.init(namespace.text, describe(await pipeline.status, queues[namespace] ?? [:])))
    }
    return [
      "version": .string(version), "uptimeSeconds": .int((parts.time.uptime - engine.startedAt).components.seconds),
      "generation": .int(engine.hub.generation), "configFaults": .array(engine.hub.faults.map { .string($0) }),
      "network": [
        "kind": .string(network.kind.rawValue), "interface": network.interface.map { .string($0) } ?? .null,
      ],
      "memory": ["residentBytes": .int(process().residentBytes), "virtualBytes": .int(process().virtualBytes)],
      "remote": await remote?.status ?? .null, "storeBytes": .int(await parts.store.storeBytes()),
      "store": describe(engine.storeHealth),
      "namespaces": .object(namespaces),
    ]
  }

  private func describe(_ health: StoreHealth) -> JSONValue {
    [
      "state": .string(health.state.rawValue), "since": .string(RFC3339.text(unixMilliseconds: health.since)),
      "takesReports": .bool(health.takesReports), "cause": health.cause.map { .string($0) } ?? .null,
      "faults": .int(health.faults), "setAside": .int(health.setAside), "salvagedRows": .int(health.salvagedRows),
      "lostRows": .int(health.lostRows),
    ]
  }

  private func describe(_ status: PipelineStatus, _ queues: [ReportKind: QueueStatus]) -> JSONValue {
    let state = status.isRetired ? "retired" : status.isHeld ? "held" : "active"
    let flow: JSONValue = [
      "usedBytes": .int(status.flowUsedBytes), "allowedBytes": .int(status.flowAllowedBytes),
      "windowEndsInSeconds": .int(status.flowWindowEndsIn.secondsRoundedUp),
    ]
    let members: [JSONValue.Member] = [
      .init("state", .string(state)), .init("circuit", status.circuitIsOpen ? "open" : "closed"),
      .init("lastSuccess", status.lastSuccess.map { .string(RFC3339.text(unixMilliseconds: $0)) } ?? .null),
      .init("lastFailure", status.lastFailure.map(describe) ?? .null),
      .init("nextTryInSeconds", status.nextTryIn.map { .int($0.secondsRoundedUp) } ?? .null), .init("flow", flow),
    ]
    return .object(
      members
        + ReportKind.allCases.map { kind in
          .init(kind.rawValue, describe(queues[kind], status.counters[kind]))
        })
  }

  func describe(_ failure: RetryRecord.Failure) -> JSONValue {
    [
      "time": .string(RFC3339.text(unixMilliseconds: failure.unixMilliseconds)),
      "status": failure.status.map { .int($0) } ?? .null, "code": failure.code.map { .string($0.rawValue) } ?? .null,
      "cause": .string(failure.cause),
    ]
  }

  private func describe(_ queue: QueueStatus?, _ counters: EngineCounters) -> JSONValue {
    let queue = queue ?? QueueStatus(ledger: Ledger(), bytes: 0, oldestCreatedTime: nil)
    let accounts = Ledger.Account.allCases.map { JSONValue.Member($0.rawValue, .int(queue.ledger[$0])) }
    let age = queue.oldestCreatedTime.map { max(0, engine.parts.time.unixMilliseconds - $0) / 1000 } ?? 0
    let packets = EngineCounters.Result.allCases.map {
      JSONValue.Member($0.rawValue, .int(counters.packets[$0] ?? 0))
    }
    return [
      "waiting": .int(queue.ledger[.waiting]), "claimed": .int(queue.ledger[.claimed]),
      "dead": .int(queue.ledger[.dead]), "bytes": .int(queue.bytes), "oldestAgeSeconds": .int(age),
      "ledger": .object([.init("stored", .int(queue.ledger.stored))] + accounts),
      "packets": .object(packets), "bytesRaw": .int(counters.bytesRaw), "bytesSent": .int(counters.bytesSent),
    ]
  }
}
