import Foundation
import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("An output to a folder")
struct FolderOutputTests {
  private func files(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
  }

  @Test("gets each report once, waits while the folder is missing, and needs no collector")
  func delivers() async throws {
    let folder = TemporaryFolder.make() + "/out"
    let rig = DeliveryRig()
    let engine = try await rig.engine(DeliveryRig.snapshot { $0.maxItem = 2 }, to: FolderOutput(folder: folder))
    await rig.report(1...5, to: engine)
    #expect(await rig.runs { await engine.pipelines[DeliveryTests.shop]?.status.lastFailure != nil })
    let failure = await engine.pipelines[DeliveryTests.shop]?.status.lastFailure
    #expect(failure?.cause == "\(folder): not writable" && failure?.status == nil)

    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 5 })
    #expect(try files(in: folder).count == 3)
    #expect(rig.transport.requests.isEmpty)
    #expect(try await DeliveryTests.ledger(engine).isBalanced)
    await engine.stop()
    try FileManager.default.removeItem(atPath: folder)
    rmdir(String(folder.dropLast(4)))
  }
}
