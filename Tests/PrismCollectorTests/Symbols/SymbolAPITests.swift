import Foundation
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Debug files over the API", .enabled(if: PlantedProgram.Language.c.isInstalled))
struct SymbolAPITests {
  private let rig: PageRig
  private let program: PlantedProgram
  private let file: [UInt8]

  init() throws {
    (rig, program) = (try PageRig(), try PlantedProgram(.c))
    file = try Array(Data(contentsOf: URL(filePath: program.debugFile(1))))
  }

  private func post(
    _ body: some Sequence<UInt8>, _ query: [(name: String, value: String)] = [], token: String = "operator",
    type: String = "application/octet-stream"
  ) async -> (status: Int, json: JSONValue) {
    var request = PageRig.request(
      "/api/v1/symbols", query, method: .post,
      headers: [("content-type", type), ("authorization", "Bearer \(token)-token-of-tests")])
    request.body = Array(body)
    let answer = await rig.answer(request)
    return (answer.status, (try? JSONValue(parsing: answer.body)) ?? .null)
  }

  @Test("an operator uploads, lists and removes; a viewer lists")
  func whole() async throws {
    #expect(await post(file, token: "viewer").status == 403)
    #expect(await post(file, type: "text/plain").status == 400)
    let added = await post(file)
    let id = try #require(added.json["buildId"]?.string)
    #expect(added.status == 200 && added.json["result"] == "added")
    #expect(await post(file).json["result"] == "duplicate")
    let list = try await rig.json("/symbols")
    #expect(list["total"] == 1 && list["files"]?.array?.first?["buildId"]?.string == id)
    #expect(rig.rig.logged.contains { $0.contains("added a debug file") && $0.contains(id) })
    let request = PageRig.request(
      "/api/v1/symbols/\(id)", method: .delete, headers: [("authorization", "Bearer operator-token-of-tests")])
    #expect(await rig.answer(request).status == 200)
    #expect(await rig.answer(request).status == 404)
    #expect(try await rig.json("/symbols")["total"] == 0)
  }

  @Test("a large file comes in parts; one that came before may come again, one that is missing is named")
  func parts() async throws {
    let size = file.count
    let query = { (offset: Int) in [("upload", "a1"), ("size", String(size)), ("offset", String(offset))] }
    #expect(await post(file[..<1000], query(0)).json["result"] == "more")
    let gap = await post(file[2000...], query(2000))
    #expect(gap.status == 422 && gap.json["detail"]?.string?.contains("1000 bytes of \(size) are here") == true)
    #expect(await post(file[..<1000], query(0)).json["result"] == "more")
    #expect(await post(file[500..<2000], query(500)).json["result"] == "more")
    #expect(await post(file[2000...], query(2000)).json["result"] == "added")
    #expect(try await rig.json("/symbols")["total"] == 1)
    let left = try FileManager.default.contentsOfDirectory(atPath: rig.collector.options.symbolFolder.path)
    #expect(left.count == 1, "no part is left")
  }

  @Test("the first part begins an upload again: nothing is left of a longer one that its sender gave up")
  func again() async throws {
    let size = file.count
    let query = { (offset: Int, size: Int) in [("upload", "ci"), ("size", String(size)), ("offset", String(offset))] }
    let longer = file + [UInt8](repeating: 7, count: size)
    #expect(await post(longer[..<(size + 500)], query(0, longer.count)).json["result"] == "more")
    #expect(await post(file[..<1000], query(0, size)).json["result"] == "more")
    let other = await post(longer[2000..<3000], query(2000, longer.count))
    #expect(other.status == 422 && other.json["detail"]?.string?.contains("1000 bytes of") == true)
    #expect(await post(file[1000...], query(1000, size)).json["result"] == "added")
    #expect(await post(longer[..<(size + 500)], query(0, longer.count)).json["result"] == "more")
    let mixed = await post(file[1000...], query(1000, size))
    #expect(mixed.status == 422 && mixed.json["detail"]?.string?.contains("begin again at offset 0") == true)
  }

  @Test("what names nothing, is no part or has no room is refused, and leaves nothing")
  func refused() async throws {
    let stripped = try Array(Data(contentsOf: URL(filePath: program.program(1))))
    let answer = await post(stripped)
    #expect(answer.status == 422 && answer.json["detail"]?.string?.hasPrefix("the upload: it is stripped") == true)
    #expect(await post([]).status == 400)
    #expect(await post(file, [("upload", "../up")]).status == 400)
    #expect(await post(file, [("size", "10")]).status == 422)
    #expect(await post(file, [("size", String(SymbolFolder.fileBytesMax + 1))]).status == 400)
    for number in 0..<9 {
      let status = await post([1], [("upload", "u\(number)"), ("size", "9")]).status
      #expect(status == (number < 8 ? 200 : 422))
    }
    #expect(try await rig.json("/symbols")["total"] == 0)
  }

  @Test("builds that crashed and have no file are listed by their crashes")
  func missing() async throws {
    for number in 1...3 {
      let id = number < 3 ? "aaaaaaaa" : "bbbbbbbb"
      let frame = #""frames":[{"module":"till","buildId":"\#(id)","offset":"0x\#(number)"}]"#
      _ = try await rig.collector.store.take(StoreRig.packet([number], type: "appCrash", members: { _ in frame }))
    }
    let missing = try await rig.json("/symbols")["missing"]?.array ?? []
    #expect(missing.map { $0["buildId"]?.string } == ["aaaaaaaa", "bbbbbbbb"])
    #expect(missing.map { $0["crashes"]?.int } == [2, 1] && missing.first?["module"] == "till")
  }
}
