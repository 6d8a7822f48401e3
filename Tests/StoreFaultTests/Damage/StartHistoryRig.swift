import CFaultVFS
import PrismBase
import PrismProtocol
import PrismRecovery
import PrismStore
import PrismTestSupport

/// One life of a state folder: starts that end in every way there is, and the memory of what was answered.
final class StartHistoryRig {
  enum End: String, CaseIterable {
    /// By memory, a service manager's SIGKILL after its timeout, a crash.
    case killed
    case stopped
    case powerLost, powerLostInContainer
    /// It serves, and is killed then.
    case killedServing
    case corrupted
  }

  private(set) var story: [String] = []
  private var folder = FaultFolder()
  private let book = LogBook()
  private let time = ManualTime()
  private var boot = 1
  private var next = 0
  private var stored: Set<Int> = []
  private var leaving: Set<Int> = []
  private var isDamaged = false

  var log: [String] { book.lines }

  private func open(_ folder: FaultFolder, _ point: KillPoint?, _ marker: StartMarker) async throws -> ReportStore {
    var options = StoreOptions(folder: folder.path)
    (options.ballastBytes, options.checkpointInterval, options.time) = (0, .zero, time)
    options.segmentBytes = 8192
    (options.vfs, options.marker, options.onMove) = (String(cString: fvfs_name), marker, { point?.take() })
    options.log = Logger(write: book.write)
    return try await ReportStore.openOnceFree(options)
  }

  private var marker: StartMarker { StartMarker(folder: folder.path, bootID: "boot-\(boot)") }

  /// Takes reports and ends in order.
  func begin() async throws {
    let store = try await open(folder, nil, marker)
    await store.markReady()?.value
    for _ in 0..<5 { await append(store, 30) }
    try await deliver(store)
    await store.close()
  }

  func start(endingBy end: End, using random: inout SeededRandom) async throws {
    time.advance(by: .milliseconds(Int64.random(in: 200...(random.oneIn(6) ? 90_000 : 15_000), using: &random)))
    let marker = marker
    // A start takes some 10 to 60 steps; a brought-over database some more.
    let step = end == .killedServing || end == .corrupted ? .max : Int.random(in: 1...30, using: &random)
    let point = KillPoint(folder, step: step) { if end == .stopped { marker.stop() } }
    story.append("\(end) at \(step)")
    try await point.watching {
      let store = try await open(folder, point, marker)
      if !point.isReached {
        await store.markReady()?.value
        await serve(store, point, using: &random)
      }
      point.end()
    }
    // The rest of the process's life did not happen.
    folder = point.remains
    if end == .powerLost { boot += 1 }
    if end == .corrupted { damage(using: &random) }
  }

  private func serve(_ store: ReportStore, _ point: KillPoint, using random: inout SeededRandom) async {
    for _ in 0..<Int.random(in: 0...4, using: &random) where !point.isReached {
      await append(store, 7, unless: point)
      if random.oneIn(2) { try? await deliver(store) }
      _ = try? await store.maintain()
    }
  }

  private func damage(using random: inout SeededRandom) {
    let path = folder.path + "/prism.db"
    let damage = FileDamage.flips(
      at: Int.random(in: 0..<max(1, FaultFolder.size(path)), using: &random) / 4096 * 4096, count: 40)
    damage.apply(to: path, using: &random)
    story.append("\(damage)")
    isDamaged = true
  }

  private func append(_ store: ReportStore, _ count: Int, unless point: KillPoint? = nil) async {
    let numbers = next..<next + count
    next += count
    // An answer goes out only if the process still lives.
    guard case .committed = await store.append([Reports.batch(numbers)]), point?.isReached != true else { return }
    stored.formUnion(numbers)
  }

  private func deliver(_ store: ReportStore) async throws {
    guard let packet = try await store.turn(UploadCommit(claims: [Reports.claim(20)])).first ?? nil else { return }
    let lines = packet.rowTexts
    leaving.formUnion(lines.compactMap { Reports.number(in: $0) })
    _ = try await store.turn(UploadCommit(dispositions: [.delivered(packet.id, receipt: Reports.receipt)]))
  }

  /// The loss or fault that is found once a start lives; nil: nothing.
  func verdict() async throws -> String? {
    time.advance(by: .seconds(1))
    let store = try await open(folder, nil, marker)
    await store.markReady()?.value
    // Each of these may be the first to find the damage: it fails then, and the next try meets another database.
    var held: [Int?] = []
    for attempt in 1...5 {
      do {
        while try await store.maintain() {}
        _ = try await store.requeue(.all(nil))
        held = try await store.held()
        break
      } catch { if attempt == 5 { throw error } }
    }
    let health = store.health
    let corrupt = try await store.status().values.reduce(0) { $0 + $1.values.reduce(0) { $0 + $1.ledger[.corrupt] } }
    let isBalanced = try await store.isBalanced()
    await store.close()
    let lost = stored.subtracting(leaving).subtracting(held.compactMap { $0 }).count
    let isNamed =
      isDamaged
      && (lost <= corrupt || !health.leftBehind.isEmpty
        || log.contains { $0.contains("not known") || $0.contains("not a") })
    let isWhole = !held.contains(nil) && Set(held).count == held.count && isBalanced
    if isWhole && (lost == 0 || isNamed) && (isDamaged || corrupt == 0 && health.leftBehind.isEmpty) { return nil }
    return "lost \(lost), corrupt \(corrupt), left \(health.leftBehind), whole \(isWhole), balanced \(isBalanced)"
  }
}
