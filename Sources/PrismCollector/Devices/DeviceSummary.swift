import PrismBase
import PrismProtocol
import Synchronization

/// A device in the list of all: the sum of its streams, with what else is known of it.
struct DeviceSummary: Sendable, Equatable {
  enum Order: String, Sendable, CaseIterable {
    case seen, silent, device, waiting, lost, packets, crash
  }

  /// Streams that one question about all devices reads, those heard of last.
  static let streamsMax = 200_000

  let device: String
  private(set) var seenTime: Int64 = 0
  private(set) var packets = 0
  private(set) var sums = LedgerSums()
  private(set) var namespaces: Set<String> = []
  /// The app that it reported last; empty: its reports say neither.
  private(set) var app = "", version = ""
  /// When its last crash came, milliseconds since 1970; nil: no crash is noted.
  private(set) var crashTime: Int64?
  private var appTime: Int64 = 0
  var tags: [String: String] = [:]

  struct LedgerSums: Sendable, Equatable {
    var waiting = 0, lost = 0, differences = 0
    /// Reports that it keeps, and does not send by itself (docs/recorder.md).
    var kept = 0
  }

  init(device: String) { self.device = device }

  mutating func add(_ stream: DeviceStream, _ account: DeviceLedger?) {
    seenTime = max(seenTime, stream.receivedTime)
    packets += stream.packets
    namespaces.insert(stream.namespace)
    guard let ledger = account else { return }
    sums.waiting += ledger.waiting
    sums.lost += ledger.lost
    sums.kept += ledger.counts["kept", default: 0]
    sums.differences += ledger.difference == nil ? 0 : 1
  }

  mutating func add(_ facts: DeviceFacts.Facts) {
    crashTime = [crashTime, facts.crashTime].compactMap(\.self).max()
    guard facts.notedTime >= appTime, !facts.app.isEmpty || !facts.version.isEmpty else { return }
    (app, version, appTime) = (facts.app, facts.version, facts.notedTime)
  }

  /// Not heard of in the last 24 hours.
  func isSilent(now: Int64) -> Bool { seenTime <= now - 86_400_000 }

  /// - Returns: with the accounts of all, in sum.
  static func byDevice(_ streams: [DeviceStream]) -> (devices: [String: DeviceSummary], accounts: [String: Int]) {
    var (devices, accounts): ([String: DeviceSummary], [String: Int]) = ([:], [:])
    for stream in streams {
      let account = stream.account
      devices[stream.device, default: DeviceSummary(device: stream.device)].add(stream, account)
      guard let account else { continue }
      accounts["stored", default: 0] += account.stored
      accounts["waiting", default: 0] += account.waiting
      for (name, count) in account.counts { accounts[name, default: 0] += count }
    }
    return (devices, accounts)
  }

  /// One a device, in no order.
  static func all(of streams: [DeviceStream]) -> [DeviceSummary] { Array(byDevice(streams).devices.values) }

  /// The same of the whole fleet.
  static func all(in store: any PacketStore) async throws(StoreFailure) -> [DeviceSummary] {
    all(of: try await store.queries.streams(.fleet, of: nil, limit: streamsMax))
  }

  /// The place in an order; the largest number comes first, but names ascend. A page begins behind the place at which the one
  /// before it ended, however many devices come meanwhile.
  struct Place: Sendable, Comparable {
    let number: Int
    let device: String

    static func < (one: Place, other: Place) -> Bool {
      one.number == other.number ? one.device < other.device : one.number > other.number
    }
  }

  func place(_ order: Order) -> Place {
    let number =
      switch order {
      case .device: 0
      case .seen: Int(seenTime)
      case .silent: -Int(seenTime)
      case .crash: Int(crashTime ?? 0)
      case .waiting: sums.waiting
      case .lost: sums.lost
      case .packets: packets
      }
    return Place(number: number, device: device)
  }

  var json: JSONValue {
    JSONValue([
      "device": device, "seenTime": seenTime, "packets": packets, "waiting": sums.waiting, "lost": sums.lost,
      "kept": sums.kept, "differences": sums.differences, "namespaces": namespaces.sorted(), "app": app,
      "version": version,
      "crashTime": crashTime, "tags": JSONValue(byName: tags),
    ])
  }
}

/// A `Prism-Ledger` as it came: what a sender stored of one namespace and kind, and where it went (docs/packet.md).
struct DeviceLedger: Sendable, Equatable {
  static let accounts = ["delivered", "expired", "evicted", "cleared", "dead", "removed", "kept", "overwritten"]
  /// Reports in these are lost.
  static let lostAccounts = ["expired", "evicted", "cleared", "dead", "removed"]

  /// Changes of records that were merged into a later one before they left.
  static let merged = "merged"

  private(set) var epoch = ""
  private(set) var stored = 0
  private(set) var counts: [String: Int] = [:]
  /// Rows of the packet itself, which the sender counts as waiting until it has the receipt.
  private(set) var carried = 0

  /// nil: the text is no ledger.
  /// - Parameter isOfReports: false: of changes of records, whose sender counts as removed what it merges.
  init?(_ text: String, isOfReports: Bool = true) {
    // Bytes: a list of devices reads some 100,000 of them.
    for part in text.utf8.split(separator: UInt8(ascii: ";")) {
      guard let sign = part.firstIndex(of: UInt8(ascii: "=")), sign > part.startIndex else { return nil }
      let (name, value) = (Substring(part[..<sign]), Substring(part[part.index(after: sign)...]))
      guard !value.isEmpty else { return nil }
      if name == "epoch" {
        epoch = String(value)
      } else if let count = Int(value), (0...Int(Int32.max) * 1024).contains(count) {
        switch name {
        case "stored": stored = count
        case "carried": carried = count
        case "removed" where !isOfReports: counts[Self.merged] = count
        default: counts[String(name)] = count
        }
      }
    }
  }

  /// Reports that were neither delivered nor lost when the packet was made, without those of the packet.
  var waiting: Int { max(0, unsettled - carried) }
  /// Below 0 where the accounts don't balance.
  private var unsettled: Int {
    Self.accounts.reduce(stored - counts[Self.merged, default: 0]) { $0 - counts[$1, default: 0] }
  }
  var lost: Int { Self.lostAccounts.reduce(0) { $0 + counts[$1, default: 0] } }

  /// nil: it balances.
  var difference: String? {
    unsettled < 0 ? "the accounts have \(-unsettled) reports more than were stored" : nil
  }

  var json: JSONValue {
    var members = [JSONValue.Member("epoch", .string(epoch)), JSONValue.Member("stored", .int(stored))]
    members += Self.accounts.map { JSONValue.Member($0, .int(counts[$0, default: 0])) }
    if let merged = counts[Self.merged] { members.append(JSONValue.Member(Self.merged, .int(merged))) }
    members.append(JSONValue.Member("waiting", .int(waiting)))
    return .object(members)
  }
}

extension DeviceStream {
  /// Whether its packets have reports, and not changes of records.
  var isOfReports: Bool { RowKind(named: kind)?.isReport ?? true }
  /// nil: its sender gave no ledger.
  var account: DeviceLedger? { ledger.flatMap { DeviceLedger($0, isOfReports: isOfReports) } }
}

/// All devices that a reader may see, in no order.
struct DeviceList: Sendable {
  var devices: [DeviceSummary] = []
  /// The accounts of their reports, in sum.
  var accounts: [String: Int] = [:]
  /// There are more streams than one question reads.
  var isCut = false
}

/// The list of all devices, as it was read last. A small fleet is read for each question. The list of a large one takes longer to
/// read, so it may be a minute old, and is read again behind the answer.
final class DeviceIndex: Sendable {
  typealias Read = @Sendable () async throws(CollectorRefusal) -> DeviceList

  /// Devices of a small fleet.
  static let smallMax = 2_000
  private static let (freshAge, ageMax): (Duration, Duration) = (.seconds(2), .seconds(60))

  private struct State {
    var list = DeviceList()
    /// By the time since the start; nil: it has to be read.
    var readAt: Duration?
    var isReading = false
    /// Counts what made the list wrong.
    var changes = 0
  }

  private let state = Mutex(State())

  /// Something changed here that the next answer must show.
  func change() {
    state.withLock { state in
      state.changes += 1
      state.readAt = nil
    }
  }

  /// - Parameter now: the time since the start.
  func list(now: Duration, _ read: @escaping Read) async throws(CollectorRefusal) -> DeviceList {
    let (known, isDue) = known(now)
    guard let known else { return try await refreshed(now, read) }
    if isDue {  // the list of before stays where it can't be read
      Task(executorPreference: BackgroundExecutor.shared) { _ = try? await self.refreshed(now, read) }
    }
    return known
  }

  private func known(_ now: Duration) -> (list: DeviceList?, isDue: Bool) {
    state.withLock { state in
      guard state.list.devices.count > Self.smallMax, let readAt = state.readAt, now - readAt < Self.ageMax else {
        return (nil, false)
      }
      let isDue = now - readAt >= Self.freshAge && !state.isReading
      if isDue { state.isReading = true }
      return (state.list, isDue)
    }
  }

  private func refreshed(_ now: Duration, _ read: Read) async throws(CollectorRefusal) -> DeviceList {
    let before = state.withLock { $0.changes }
    defer { state.withLock { $0.isReading = false } }
    let list = try await read()
    state.withLock { state in
      guard state.changes == before else { return }
      (state.list, state.readAt) = (list, now)
    }
    return list
  }
}

/// Counts devices that became silent, for the metrics.
struct DeviceWatch: Sendable {
  /// Between two looks.
  static let interval: Duration = .seconds(300)
  private static let day: Int64 = 86_400_000

  let collector: Collector

  /// Devices that sent within the 6 days before `time`, and not since.
  static func silent(_ devices: [DeviceSummary], since time: Int64) -> Int {
    devices.count { (time - 6 * day..<time).contains($0.seenTime) }
  }

  /// Looks once. A store that can't be read leaves the figure as it was.
  func look() async {
    let time = collector.time
    guard let devices = try? await DeviceSummary.all(in: collector.store),
      let since = try? await collector.access.page.notices.silentSince(
        Self.day, now: time.unixMilliseconds, uptime: time.uptime)
    else { return }
    collector.counts.set(silentDevices: Self.silent(devices, since: since))
  }

  func run() async {
    await collector.time.keepLooking(each: Self.interval) {
      await look()
      return false
    }
  }
}

/// The version of an app by its first run of numbers, also behind a word, as in `release-1.9`: `1.10` is after `1.9`. `2.0-rc1`, `2.0~rc1`
/// and `2.0rc1` are before `2.0`. `2.0-3` and `2.0 (77)` are after it. A `+` and the rest do not count.
struct CrashVersion: Sendable, Comparable {
  /// A number of any length, or a word.
  private struct Part: Sendable, Comparable {
    let isWord: Bool, text: String

    init(_ run: Substring) {
      isWord = run.first.map(CrashVersion.isDigit) != true
      text = isWord ? run.lowercased() : String(run.drop { $0 == "0" })
    }

    static func < (one: Part, other: Part) -> Bool {
      if one.isWord != other.isWord { return other.isWord }
      let (length, others) = one.isWord ? (0, 0) : (one.text.utf8.count, other.text.utf8.count)
      return (length, one.text) < (others, other.text)
    }
  }

  private static let early: Set = [
    "a", "alpha", "b", "beta", "c", "rc", "cr", "m", "pre", "preview", "dev", "snapshot",
  ]

  private let numbers: [Part]
  /// -1: before the version without a suffix; 0: as it, or after it by the suffix; 1: after it.
  private let rank: Int
  private let suffix: [Part]

  /// - Returns: nil: there is no number, or it is in a hash, as in `7f3a9c`.
  init?(_ text: Substring) {
    guard let first = text.firstIndex(where: Self.isDigit) else { return nil }
    let begin = text[..<first].lastIndex { !$0.isLetter }.map(text.index(after:)) ?? text.startIndex
    let word = text[begin...].prefix { $0.isLetter || Self.isDigit($0) }
    guard word.count < 6 || word.allSatisfy(Self.isDigit) || !word.allSatisfy(\.isHexDigit) else { return nil }
    var (rest, found) = (text[first...].prefix { $0 != "+" }, [Part]())
    repeat {
      if !found.isEmpty { rest.removeFirst() }
      let run = rest.prefix(while: Self.isDigit)
      found.append(Part(run))
      rest = rest[run.endIndex...]
    } while (rest.first == "." || rest.first == "_") && rest.dropFirst().first.map(Self.isDigit) == true
    // Missing numbers are 0.
    numbers = found.reversed().drop { $0.text.isEmpty }.reversed()
    let parts = Self.parts(rest)
    suffix = parts
    let isNumber = parts.first?.isWord == false
    // `1.1.1a` is a later one.
    let isEarly = parts.first.map { Self.early.contains($0.text) && ($0.text.count > 1 || parts.count > 1) } ?? false
    rank = rest.hasPrefix("-") ? isNumber ? 1 : -1 : rest.hasPrefix("~") || isEarly ? -1 : 0
  }

  private static func parts(_ text: Substring) -> [Part] {
    var (rest, parts) = (text, [Part]())
    while let first = rest.first {
      let run = rest.prefix { isDigit($0) == isDigit(first) && $0.isLetter == first.isLetter }
      if isDigit(first) || first.isLetter { parts.append(Part(run)) }
      rest = rest[run.endIndex...]
    }
    return parts
  }

  private static func isDigit(_ character: Character) -> Bool { character.isASCII && character.isNumber }

  static func < (one: CrashVersion, other: CrashVersion) -> Bool {
    if one.numbers != other.numbers { return one.numbers.lexicographicallyPrecedes(other.numbers) }
    if one.rank != other.rank { return one.rank < other.rank }
    return one.suffix.lexicographicallyPrecedes(other.suffix)
  }
}
