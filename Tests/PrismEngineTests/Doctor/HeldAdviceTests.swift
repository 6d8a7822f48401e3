import PrismBase
import PrismControl
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("Doctor: what to do about a held namespace")
struct HeldAdviceTests {
  @Test(
    "each refusal that holds a namespace is named, with the next command",
    arguments: [
      (403, "revoked", "the device was revoked", ["`prism-collector device restore device`", "prismctl reload"]),
      (401, "token", "the token is wrong", ["authorization.tokenFile", "prismctl reload"]),
      (401, "", "a client certificate of a known authority is required", ["tls.certFile", "prismctl reload"]),
      (400, "unknownKey", "no such key", ["give the collector the key", "restart it", "prismctl reload"]),
      (404, "", "no such path", ["look at the url", "prismctl reload"]),
    ])
  func held(status: Int, code: String, message: String, advice: [String]) async throws {
    let body = (["code": .string(code), "message": .string(message)] as JSONValue).text
    let rig = DeliveryRig(
      ScriptedTransport { ScriptedTransport.answer($0.packetHeaders == nil ? 503 : status, body: body, to: $0) })
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { await engine.pipelines[NamespaceName("shop")!]?.status.isHeld == true })
    let findings = await Doctor(engine: engine, process: ProcessFigures()).findings()
    let finding = try #require(findings.first { $0.check == "delivery shop" }, "\(findings)")
    #expect(finding.text.contains(message) && advice.allSatisfy { finding.advice?.contains($0) == true }, "\(finding)")
    await engine.stop()
  }
}
