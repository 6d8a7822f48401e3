import PrismConfig
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("Remote configuration at work", .timeLimit(.minutes(3)))
struct RemoteConfigurationClientTests {
  private static func full(_ time: Int, _ namespaces: String) -> String {
    #"{"namespaces":[\#(namespaces)],"updateTime":\#(time),"full":true}"#
  }

  private func reason(_ status: JSONValue) -> String? { status["lastFailed"]?["reason"]?.string }

  @Test("a namespace comes, changes and goes; a refused change leaves all as it was and is reported to the server")
  func lifeOfANamespace() async throws {
    let rig = RemoteRig()
    rig.source.answer(Self.full(7, #"{"name":"pay","monitorList":[{"type":"paid"}],"maxItem":9}"#))
    let running = try await rig.start()
    #expect(await rig.runs(running) { $0["updateTime"] == 7 })
    #expect(running.namespace("pay")?.maxItem == 9)
    let origins = await running.stack.current.origins
    #expect(origins[NamespaceName("pay")!, "maxItem"] == .remote)
    #expect(rig.source.queries == ["deviceId=device"])

    rig.source.answer(
      #"{"namespaces":[{"name":"pay","keyId":"x","maxItem":1001,"monitorList":[{"type":"paid"}]}],"updateTime":8}"#)
    #expect(await rig.runs(running) { reason($0) != nil })
    #expect(
      reason(await running.client.status.controlJSON)
        == "remote: pay.keyId: can never be set remotely; remote: pay.maxItem: is 1001, must be 1...1000; "
        + "limits.maxItem of prismd.yaml may raise the upper end to 10000")
    #expect(running.namespace("pay")?.maxItem == 9)

    rig.source.answer(#"{"namespaces":[{"name":"pay","delFlag":1}],"updateTime":9}"#)
    #expect(await rig.runs(running) { $0["updateTime"] == 9 })
    #expect(running.namespace("pay") == nil)
    let last = try #require(rig.source.queries.last)
    #expect(last.hasPrefix("deviceId=device&updateTime=7&lastApplied=7&lastFailed=8&reason=remote%3A%20pay.keyId"))
    #expect(reason(await running.client.status.controlJSON) == nil)
    let figures = await running.client.figures
    #expect(figures.results[.applied] == 2 && figures.results[.refused] ?? 0 >= 1 && figures.number == 9)
    #expect(!figures.isRefused && figures.lastAnswerMilliseconds > 0)
    await running.stop()
  }

  @Test("a start without the server has what the last run had")
  func cache() async throws {
    let rig = RemoteRig()
    rig.source.answer(Self.full(7, #"{"name":"shop","maxItem":9}"#))
    let first = try await rig.start()
    #expect(await rig.runs(first) { _ in rig.cache.bytes != nil })
    await first.stop()

    let away = RemoteRig()
    away.cache.set(rig.cache.bytes)
    away.source.set { _ in .failure(.connect, detail: "away") }
    let second = try await away.start()
    #expect(second.namespace("shop")?.maxItem == 9)
    #expect(await away.runs(second) { $0["cause"] == "connect: away" })
    #expect(away.source.queries.last == "deviceId=device&updateTime=7&lastApplied=7")
    await second.stop()
  }

  @Test("a cache that is damaged, or that the files don't bear, is not used, and that is said")
  func unusableCache() async throws {
    let rig = RemoteRig()
    rig.source.answer(Self.full(7, #"{"name":"shop","maxItem":9}"#))
    let first = try await rig.start()
    #expect(await rig.runs(first) { _ in rig.cache.bytes != nil })
    await first.stop()
    let bytes = try #require(rig.cache.bytes)

    let damaged = RemoteRig()
    damaged.cache.set(bytes.dropLast())
    let second = try await damaged.start()
    #expect(second.namespace("shop")?.maxItem == 1000)
    #expect(damaged.cache.setAsideBytes == bytes.dropLast())
    #expect(await damaged.runs(second) { _ in damaged.source.queries.first == "deviceId=device" })
    await second.stop()

    let narrowed = RemoteRig(remote: "{url: \"https://config.test/prism\", allow: [isUpload]}")
    narrowed.cache.set(bytes)
    let third = try await narrowed.start()
    #expect(third.namespace("shop")?.maxItem == 1000)
    #expect(
      reason(await third.client.status.controlJSON)
        == "remote: shop.maxItem: is not granted; remote.allow of prismd.yaml lists what is")
    await third.stop()
  }

  @Test("a reload of the files keeps the layer on top, and takes it off where they don't bear it any more")
  func reload() async throws {
    let rig = RemoteRig()
    rig.source.answer(Self.full(7, #"{"name":"shop","maxItem":9}"#))
    let running = try await rig.start()
    #expect(await rig.runs(running) { $0["updateTime"] == 7 })
    rig.write("namespaces.d/shop.yaml", RemoteRig.shop + "expirationDay: 3\nmaxItem: 50\n")
    _ = await running.client.replace(files: try rig.load())
    #expect(running.namespace("shop")?.expirationDays == 3)
    #expect(running.namespace("shop")?.maxItem == 9)

    rig.write(remote: "{url: \"https://config.test/prism\", allow: []}")
    let outcome = await running.client.replace(files: try rig.load())
    #expect(outcome.dropped != nil)
    #expect(running.namespace("shop")?.maxItem == 50)
    #expect(reason(await running.client.status.controlJSON)?.contains("shop.maxItem: is not granted") == true)

    rig.write(remote: "{url: \"https://config.test/prism\"}")
    _ = await running.client.replace(files: try rig.load())
    #expect(await rig.runs(running) { $0["updateTime"] == 7 && $0["lastFailed"] == .null })
    #expect(running.namespace("shop")?.maxItem == 9)

    rig.write(remote: nil)
    _ = await running.client.replace(files: try rig.load())
    #expect(running.namespace("shop")?.maxItem == 50)
    #expect(await running.client.status.controlJSON == .null)
    await running.stop()
  }

  @Test("a collector that can't be reached is left again after 10 minutes, and the rows leave by the old one")
  func probation() async throws {
    let rig = RemoteRig(remote: "{url: \"https://config.test/prism\", allow: [url, maxItem]}")
    rig.delivery.transport.set { request in
      request.url.hasPrefix("https://collector.test/")
        ? await ScriptedTransport.accept(request) : ScriptedTransport.failure(.connect, mayHaveLeft: false)
    }
    rig.source.answer(Self.full(1, ""))
    let running = try await rig.start()
    await rig.delivery.report(0..<3, to: running.engine)
    #expect(await rig.runs(running) { _ in !rig.delivery.transport.requests.isEmpty })

    rig.source.answer(#"{"namespaces":[{"name":"shop","url":"https://wrong.test"}],"updateTime":2}"#)
    #expect(await rig.runs(running) { $0["updateTime"] == 2 })
    #expect(running.namespace("shop")?.url == "https://wrong.test")
    #expect(await running.client.status.controlJSON["probation"]?["shop"] != nil)
    await rig.delivery.report(3..<5, to: running.engine)
    rig.source.answer(#"{"namespaces":[],"updateTime":2}"#)
    let before = rig.delivery.time.uptime
    #expect(await rig.runs(running) { $0["takenBack"] == ["shop"] })
    #expect(rig.delivery.time.uptime - before >= .seconds(600))
    #expect(running.namespace("shop")?.url == "https://collector.test")
    #expect(
      reason(await running.client.status.controlJSON)
        == "shop: no packet was accepted for 10 min; its previous one is taken back")
    #expect(
      try await rig.runs(running) { _ in
        let accepted = rig.delivery.transport.requests.filter { $0.url.hasPrefix("https://collector.test/") }
        return try accepted.flatMap { try DeliveryRig.numbers($0) }.sorted() == [0, 1, 2, 3, 4]
      })
    #expect(await rig.runs(running) { _ in rig.source.queries.last?.contains("lastFailed=2&reason=shop%3A") == true })
    await running.stop()
  }

  @Test("a version that a packet's answer names is asked for before the interval is over")
  func announced() async throws {
    let rig = RemoteRig()
    rig.delivery.transport.set { request in
      let receipt = ScriptedTransport.receipt(for: request)
      return ScriptedTransport.answer(200, receipt.merging(["prism-config-version": "5"]) { $1 }, to: request)
    }
    rig.source.answer(Self.full(4, ""))
    let running = try await rig.start()
    #expect(await rig.runs(running) { $0["updateTime"] == 4 })
    let before = rig.delivery.time.uptime
    rig.source.answer(#"{"namespaces":[],"updateTime":5}"#)
    await rig.delivery.report(0..<1, to: running.engine)
    #expect(await rig.runs(running) { $0["updateTime"] == 5 })
    #expect(rig.delivery.time.uptime - before < .seconds(500))
    await running.stop()
  }

  @Test("what is not signed, or older than what was taken, is refused: after a restart too")
  func signed() async throws {
    let remote = "{url: \"https://config.test/prism\", publicKey: \"\(ScriptedSource.publicKey)\"}"
    let older = "version: is 4, older than 5, which was taken already"
    func document(_ version: Int) -> String {
      #"{"namespaces":[{"name":"shop","maxItem":\#(version)}],"updateTime":\#(version),"full":true,"version":\#(version),"#
        + #""expireTime":1800000000000}"#
    }
    let rig = RemoteRig(remote: remote)
    rig.source.answer(document(5), isSigned: true)
    let first = try await rig.start()
    #expect(await rig.runs(first) { $0["version"] == 5 && rig.cache.bytes != nil })
    rig.source.answer(document(4), isSigned: true)
    #expect(await rig.runs(first) { reason($0) == older })
    rig.source.answer(document(6))
    let unsigned = "the answer is unsigned; with remote.publicKey every answer needs a `signature`"
    #expect(await rig.runs(first) { reason($0) == unsigned })
    #expect(first.namespace("shop")?.maxItem == 5)
    await first.stop()

    let next = RemoteRig(remote: remote)
    next.cache.set(rig.cache.bytes)
    next.source.answer(document(4), isSigned: true)
    let second = try await next.start()
    #expect(await next.runs(second) { reason($0) == older })
    #expect(second.namespace("shop")?.maxItem == 5)
    next.source.answer(document(6), isSigned: true)
    #expect(await next.runs(second) { $0["version"] == 6 && $0["lastFailed"] == .null })
    await second.stop()
  }

  @Test(
    "what can shrink stored data is refused unsigned, and taken where it is signed or listed",
    arguments: [
      ("{url: \"https://config.test/prism\"}", false, true),
      (
        "{url: \"https://config.test/prism\", allow: [maxStoreMByte, expirationDay, isUpdateClear, maxBodyMByte]}",
        false, false
      ),
      ("{url: \"https://config.test/prism\", publicKey: \"\(ScriptedSource.publicKey)\"}", true, false),
      (
        "{url: \"https://config.test/prism\", publicKey: \"\(ScriptedSource.publicKey)\", allow: [maxItem]}", true, true
      ),
    ])
  func retention(remote: String, isSigned: Bool, isRefused: Bool) async throws {
    let values = ["maxStoreMByte": "1", "expirationDay": "1", "isUpdateClear": "false", "maxBodyMByte": "2"]
    for (number, value) in values.sorted(by: { $0.key < $1.key }).enumerated() {
      let rig = RemoteRig(remote: remote)
      let running = try await rig.start()
      let before = try #require(running.namespace("shop"))
      rig.source.answer(
        #"{"namespaces":[{"name":"shop","\#(value.key)":\#(value.value)}],"updateTime":\#(number + 1),"full":true,"#
          + #""version":1,"expireTime":1800000000000}"#, isSigned: isSigned)
      #expect(await rig.runs(running) { $0["lastFailed"] != .null || $0["lastApplied"] != .null })
      let reason = reason(await running.client.status.controlJSON)
      #expect((running.namespace("shop") == before) == isRefused, "\(value.key)")
      #expect(
        reason?.hasPrefix("remote: shop.\(value.key): can shrink what is stored, and is granted with remote.publicKey")
          ?? false == isRefused)
      await running.stop()
    }
  }

  @Test(
    "when the last signed answer expires and no other comes, status and log say so, and the configuration in force stays"
  )
  func stale() async throws {
    let rig = RemoteRig(remote: "{url: \"https://config.test/prism\", publicKey: \"\(ScriptedSource.publicKey)\"}")
    let end = rig.delivery.time.unixMilliseconds + 3_600_000
    rig.source.answer(
      #"{"namespaces":[{"name":"shop","maxItem":7}],"updateTime":1,"full":true,"version":1,"expireTime":\#(end)}"#,
      isSigned: true)
    let running = try await rig.start()
    #expect(await rig.runs(running) { $0["version"] == 1 && $0["isStale"] == false })
    // The same answer, played back for ever.
    #expect(await rig.runs(running) { $0["isStale"] == true && reason($0)?.hasPrefix("expireTime: ") == true })
    #expect(running.namespace("shop")?.maxItem == 7)
    await running.stop()
  }
}
