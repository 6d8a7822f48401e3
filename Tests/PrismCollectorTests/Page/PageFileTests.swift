import Foundation
import PrismHTTP
import PrismPacket
import Testing

@testable import PrismCollector

@Suite("The files of the page")
struct PageFileTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../page")

  @Test("the program has the files of page/ as they are; scripts/embed-page writes them")
  func inStep() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    #expect(names.count == PageFiles.all.count)
    for name in names {
      let path = name == "index.html" ? "/" : "/" + name
      let file = try #require(PageFiles.all.first { $0.path == path }, "\(name)")
      #expect(try Data(contentsOf: Self.folder.appending(path: name)) == Data(file.bytes), "run scripts/embed-page")
    }
  }

  @Test("all files together have at most 150 KB over the wire, and docs/page.md says how many")
  func size() throws {
    let sizes = try PageFiles.all.map { try Gzip.member(of: $0.bytes).count }
    let all = sizes.reduce(0, +)
    #expect(all <= 150_000 && sizes.count > 5)
    let text = try String(contentsOf: Self.folder.appending(path: "../docs/page.md"), encoding: .utf8)
    let said = try #require(text.firstMatch(of: /a browser\s+loads about (\d+) KB/)?.1)
    #expect(Int(said).map { $0 * 1000 - 1000...$0 * 1000 + 1000 }?.contains(all) == true, "it loads \(all) bytes")
  }

  @Test("no file names another host, or writes markup")
  func ownOnly() {
    for file in PageFiles.all {
      let text = String(decoding: file.bytes, as: UTF8.self).replacing("http://www.w3.org/2000/svg", with: "")
      for word in [
        "http:", "https:", "//cdn", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
        "Function(",
        "DOMParser", "srcdoc", "javascript:",
      ] { #expect(!text.contains(word), "\(file.path) has \(word)") }
    }
  }

  @Test("nothing but the collector's own files is loaded, run or framed")
  func policy() async throws {
    let rig = try PageRig()
    let answer = await rig.answer(PageRig.request("/"))
    let header = { (name: String) in answer.headers.first { $0.name == name }?.value ?? "" }
    #expect(answer.status == 200 && header("Content-Type") == "text/html; charset=utf-8")
    for rule in ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"] {
      #expect(header("Content-Security-Policy").contains(rule))
    }
    #expect(!header("Content-Security-Policy").contains("unsafe"))
    #expect(header("X-Content-Type-Options") == "nosniff")
    #expect(await rig.answer(PageRig.request("/", method: .post)).status == 405)
  }

  @Test("a browser gets gzip if it takes it, and nothing if it has the file")
  func transfer() async throws {
    let rig = try PageRig()
    let plain = await rig.answer(PageRig.request("/app.js"))
    let packed = await rig.answer(PageRig.request("/app.js", headers: [("accept-encoding", "br, gzip")]))
    #expect(packed.headers.contains { $0 == ("Content-Encoding", "gzip") } && packed.body.count < plain.body.count / 2)
    let tag = try #require(plain.headers.first { $0.name == "ETag" }?.value)
    let known = await rig.answer(PageRig.request("/app.js", headers: [("if-none-match", tag)]))
    #expect(known.status == 304 && known.body.isEmpty)
  }
}
