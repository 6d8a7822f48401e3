import PrismBase
import PrismHTTP
import PrismPacket
package import PrismProtocol

/// Answers the API about debug files, which name the frames of crashes.
struct SymbolAPI {
  private static let shownMax = 1000

  let api: PageAPI

  private var symbols: Symbolizer { api.collector.access.page.symbols }

  /// `GET /symbols`: the files, the newest first, and builds that crashed and have no file, those with most crashes first.
  func list(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    _ = try await api.ask { () throws(StoreFailure) in try await CrashWatch(api.collector).refresh() }
    let (files, faults) = (await symbols.files(), await symbols.faults)
    let missing = await api.collector.access.page.crashes.builds.filter { files[$0.key] == nil }
    return PageAPI.json([
      "program": Symbolizer.isInstalled ? .string(Symbolizer.program) : .null, "total": .int(files.count),
      "files": .array(
        files.values.sorted { ($1.time, $0.buildID) < ($0.time, $1.buildID) }.prefix(Self.shownMax).map { file in
          var json = file.json.object ?? []
          json.append(.init("fault", faults[file.buildID].map { .string($0) } ?? .null))
          return .object(json)
        }),
      "missing": .array(
        missing.sorted { ($1.value.crashes, $0.key) < ($0.value.crashes, $1.key) }.prefix(Self.shownMax).map {
          ["buildId": .string($0.key), "module": .string($0.value.module), "crashes": .int($0.value.crashes)]
        }),
    ])
  }

  /// `POST /symbols`: a file, or a part of one: `upload` names it, `offset` is the part's place, `size` the size of the whole.
  func add(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = request.http.body
    guard request.http.header("content-type") == "application/octet-stream", !body.isEmpty else {
      throw CollectorRefusal(400, "send the file, or a part of it, as application/octet-stream")
    }
    let name = request.http.parameter("upload") ?? Hex.encode(((try? Hashing.sha256(body)) ?? []).prefix(16).map { $0 })
    guard (1...64).contains(name.utf8.count), name.utf8.allSatisfy(Self.isLetterOrDigit) else {
      throw CollectorRefusal(400, "upload: must be 1 to 64 letters and digits")
    }
    let size = try request.number("size", in: 1...SymbolFolder.fileBytesMax) ?? body.count
    let offset = try request.number("offset", in: 0...size) ?? 0
    let outcome: SymbolFolder.Outcome?
    do throws(SymbolFolder.Fault) {
      outcome = try await symbols.take(body, of: name, at: offset, size: size)
    } catch { throw CollectorRefusal(422, error.message) }
    guard case .added(let id) = outcome else {
      guard case .duplicate(let id) = outcome else { return PageAPI.json(["result": "more", "buildId": .null]) }
      return PageAPI.json(["result": "duplicate", "buildId": .string(id)])
    }
    api.note(request.reader, did: "added a debug file", to: id, from: request.http)
    return PageAPI.json(["result": "added", "buildId": .string(id)])
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | UInt8(ascii: " "))
  }

  /// `DELETE /symbols/{buildId}`
  func remove(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let id = request.parts.first ?? ""
    guard symbols.folder.remove(id) else { throw CollectorRefusal(404, "there is no debug file of this build id") }
    api.note(request.reader, did: "removed a debug file", to: id, from: request.http)
    return PageAPI.json(["result": "removed", "buildId": .string(id)])
  }
}

extension SymbolFolder.File {
  /// As the API and `symbols list` show it.
  package var json: JSONValue { ["buildId": .string(buildID), "bytes": .int(bytes), "time": .int(time)] }
}
