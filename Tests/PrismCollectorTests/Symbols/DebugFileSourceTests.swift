import Foundation
import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite(
  "Debug files come from a server", .serialized,
  .enabled(if: Symbolizer.isInstalled && DebugFileSource.isInstalled, "debuginfod-find is missing"))
struct DebugFileSourceTests {
  /// The questions to a server of debuginfod.
  private final class Asked: Sendable { let paths = Mutex<[String]>([]) }

  /// Takes a crash of version 1 of a stripped program, with a server that has `file` for every build.
  private func run(
    _ program: PlantedProgram, serving file: String?,
    _ body: (PageRig, DebugFileSource, Asked) async throws -> Void
  ) async throws {
    let (asked, bytes) = (Asked(), try file.map { [UInt8](try Data(contentsOf: URL(filePath: $0))) })
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { request in
      asked.paths.withLock { $0.append(request.path) }
      return HTTPResponse(status: bytes == nil ? 404 : 200, body: bytes ?? [])
    }
    let rig = try PageRig(debuginfod: "http://127.0.0.1:\(server.port)")
    let crash = try program.crash(1, bug: 1)
    let packet = try StoreRig.packet([1], type: "appCrash", members: { _ in crash })
    _ = try await rig.collector.store.take(packet)
    while try await CrashWatch(rig.collector).look() {}
    try await body(rig, try #require(DebugFileSource(rig.collector)), asked)
    #expect(SideFile.names(in: rig.collector.options.state + "/debuginfod").isEmpty)
    await server.stop()
  }

  @Test("a crash has function, file and line once the server gave the file of its build, which is asked for once")
  func named() async throws {
    let program = try PlantedProgram(.c)
    try await run(program, serving: program.debugFile(1)) { (rig, source, asked) async throws in
      while await source.look() {}
      while try await CrashWatch(rig.collector).look() {}
      let group = try #require(try await rig.json("/crashes", [("since", "0")])["groups"]?.array?.first)
      #expect(group["frame"]?.string == "price (till.c:6)")
      let files = rig.collector.options.symbolFolder.files()
      // The crash has a frame of the C library, too, for which the server gives a file of another build.
      let paths = asked.paths.withLock { $0 }
      #expect(files.count == 1 && Set(paths).count == paths.count)
      #expect(files.keys.allSatisfy { paths.contains("/buildid/\($0)/debuginfo") }, "\(paths)")
    }
  }

  @Test("a file that the server lacks, or that is of another build, is not taken, and is asked for again after an hour")
  func refused() async throws {
    let program = try PlantedProgram(.c)
    for file in [nil, program.debugFile(2)] {
      try await run(program, serving: file) { (rig, source, asked) async throws in
        while await source.look() {}
        let builds = asked.paths.withLock { $0 }
        #expect(!builds.isEmpty)
        rig.rig.time.advance(by: .seconds(3601))
        while await source.look() {}
        #expect(asked.paths.withLock { $0 } == builds + builds)
        #expect(rig.collector.options.symbolFolder.files().isEmpty)
      }
    }
  }
}
