import PrismConfig
import PrismControl
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

/// On metered networks (docs/delivery.md, "The window").
@Suite("The budget of a metered network") struct BudgetTests {
  typealias Table = DeliveryTable

  private func table(rest: Int) -> Table {
    var table = Table()
    (table.conditions.isMetered, table.conditions.flowRestBytes) = (true, rest)
    for step in DeliveryTableTests.onItsWay.prefix(4) { #expect(table.after(step.event) == step.actions) }
    return table
  }

  @Test("a packet that passes the rest is taken apart until what is left of it fits")
  func smaller() {
    var table = table(rest: 1000)
    #expect(table.after(.built([Table.built(1)])) == ["commit released 1 claims 16"])
    #expect(table.delivery.queue.claimBytesMax < .max)
  }

  @Test("a single row that passes the rest waits, with all behind it, until there is a budget again")
  func single() {
    var table = table(rest: 1000)
    #expect(table.after(.built([Table.built(1, items: 1)])) == ["ended"])
    #expect(!table.delivery.queue.isDone, "it is asked for again")
    #expect(table.delivery.queue.awaitedFlowBytes ?? 0 > 1000)
    table.conditions.flowRestBytes = 100_000
    #expect(table.after(.upload(.wanted)) == ["read 1"])
    #expect(table.after(.read(Table.id(1), Table.claimed(1, items: 1))) == ["build 1"])
    #expect(table.after(.built([Table.built(1, items: 1)])).first == "post 1 after 0")
  }

  @Test("a row that costs more than half of the whole budget leaves when half of it is left")
  func large() {
    var table = Table()
    table.conditions.configuration = DeliveryRig.snapshot { $0.maxFlowBytes = 2000 }.namespaces[NamespaceName("shop")!]
    (table.conditions.isMetered, table.conditions.flowRestBytes) = (true, 1000)
    for step in DeliveryTableTests.onItsWay.prefix(4) { _ = table.after(step.event) }
    #expect(table.after(.built([Table.built(1, items: 1)])).first == "post 1 after 0")
  }

  @Test("reports of a backlog never pass the budget, and leave in their order over the days")
  func backlog() async throws {
    let rig = DeliveryRig(network: .metered)
    let snapshot = DeliveryRig.snapshot {
      ($0.maxItem, $0.maxFlowBytes, $0.meteredInterval) = (1000, 40_000, .zero)
    }
    let engine = try await rig.engine(snapshot)
    var random = SeededRandom(seed: 7)
    for number in 0..<60 {
      // Noise does not shrink.
      let noise = (0..<1500).map { _ in UInt8.random(in: 0...255, using: &random) }
      await rig.report([number], of: "scan", payload: noise, to: engine)
    }
    let pipeline = try #require(await engine.pipelines[NamespaceName("shop")!])
    var (most, numbers): (Int, [Int]) = (0, [])
    #expect(
      try await rig.runs(step: .seconds(600)) {
        most = max(most, await pipeline.status.flow.usedBytes)
        let payloads = rig.transport.requests.filter { $0.url.hasSuffix("payload") }
        numbers = try payloads.flatMap { try DeliveryRig.numbers($0) }
        return numbers.count == 60
      })
    #expect(numbers == Array(0..<60))
    #expect((30_000...40_000).contains(most))
    await engine.stop()
  }
}
