import Glibc
import PrismBase
import PrismConfig

/// Debug files of builds that crashed, from a server of debuginfod (docs/page.md, "Debug files"). They come one after the other,
/// on a queue of its own, through `debuginfod-find` of elfutils.
actor DebugFileSource {
  static let program = "/usr/bin/debuginfod-find"
  /// Between two looks for builds, and until the server is asked again for a file that did not come.
  private static let interval: Duration = .seconds(60), pause: Duration = .seconds(3600)
  /// Of one file.
  private static let secondsMax = 600
  private static let memoryBytesMax = 512 * 1_048_576

  private let url: String
  private let collector: Collector
  /// Where the program writes; it is empty between two files.
  private let cache: String
  private let executor = DispatchQueueExecutor(label: "prism.collector.debuginfod")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  /// By build id, on the uptime clock.
  private var askedAt: [String: Duration] = [:]

  /// - Returns: nil: no server is set.
  init?(_ collector: Collector) {
    guard let url = collector.options.debuginfod else { return nil }
    (self.url, self.collector) = (url, collector)
    cache = FilePath.joined(collector.options.state, "debuginfod")
  }

  /// Whether `debuginfod-find` is installed.
  static var isInstalled: Bool { access(program, X_OK) == 0 }

  func run() async {
    await collector.time.keepLooking(each: Self.interval) { await self.look() }
  }

  /// Asks for the debug file of the build without one that crashed most. - Returns: whether the server was asked.
  func look() async -> Bool {
    let page = collector.access.page
    let missing = await page.crashes.builds(without: await page.symbols.files())
    let now = collector.time.uptime
    askedAt = askedAt.filter { now - $0.value < Self.pause }
    let next = missing.first { askedAt[$0.key] == nil && SymbolFolder.isBuildID($0.key) }
    guard Self.isInstalled, let id = next?.key else { return false }
    askedAt[id] = now
    let fault = fetch(id, to: page.symbols.folder)
    collector.log.info(
      fault == nil ? "a debug file came" : "no debug file came; asked again in an hour",
      ["build": id, "url": url, "cause": fault ?? ""])
    return true
  }

  /// - Returns: why it did not come; nil: it is in the folder.
  private func fetch(_ id: String, to folder: SymbolFolder) -> String? {
    empty()
    defer { empty() }
    let values = [
      "URLS=\(url)", "CACHE_PATH=\(cache)", "MAXSIZE=\(SymbolFolder.fileBytesMax)", "MAXTIME=\(Self.secondsMax)",
    ]
    let program = ConfinedProgram(
      cpuSeconds: UInt32(Self.secondsMax), seconds: Self.secondsMax, memoryBytes: Self.memoryBytesMax,
      outputBytesMax: 4096, fileBytesMax: SymbolFolder.fileBytesMax)
    let ran = program.run(
      ["/usr/bin/env"] + values.map { "DEBUGINFOD_\($0)" } + [Self.program, "debuginfo", id])
    let path = String(decoding: ran.output, as: UTF8.self).trimmed
    guard ran.fault == nil, path.hasPrefix(cache + "/") else { return ran.fault ?? "the server does not have it" }
    do throws(SymbolFolder.Fault) {
      _ = try folder.add(path, of: id)
      return nil
    } catch { return error.message }
  }

  private func empty() {
    for name in SideFile.names(in: cache) {
      let path = FilePath.joined(cache, name)
      for file in SideFile.names(in: path) { SideFile.remove(FilePath.joined(path, file)) }
      SideFile.remove(path)
      rmdir(path)
    }
  }
}
