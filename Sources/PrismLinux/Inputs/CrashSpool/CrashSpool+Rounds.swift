import PrismAdmission
import PrismBase
import PrismProtocol

// One look at the folder.
extension CrashSpool {
  enum Outcome: Int, Comparable {
    /// Nothing is there that could be taken.
    case empty
    /// There may be more.
    case more
    /// Some reports may be taken later.
    case mustWait

    static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
  }

  private static let groupBytesMax = 1024 * 1024
  private static let payloadBytesMax = 64 * 1024 * 1024
  /// Of a meta that there is no room for as a whole: one byte more than is read as JSON, so that it is cut.
  private static let beginningBytes = MendedMeta.readBytesMax + 1
  /// Beside its files, about.
  private static let reportBytes = 512
  /// For the common information, by attempt: a meta that has less room is cut.
  private static let reservedBytes = [0, 1536, 4096, 7168]
  private static let commonBytesMin = 256
  /// Served side by side.
  private static let usersMax = 16
  private static let faultKey = "crashSpool", keptKey = "crashSpool.kept", cutKey = "crashSpool.cut"
  private static let foreignKey = "crashSpool.foreign", heldKey = "crashSpool.held"
  private static let heldMax = 1024

  /// Takes reports of every user, the oldest first, then deletes what is too much or too old.
  func round(_ path: String, bytesMax: Int) async -> Outcome {
    let folder: SpoolFolder
    let begun = parts.time.uptime
    let listing: SpoolListing
    do {
      folder = try SpoolFolder(path)
      listing = try SpoolListing(folder: folder.descriptor, at: path)
    } catch {
      parts.log.fault(
        Self.faultKey, "the crash spool can't be used", ["folder": path, "cause": "\(error)"], level: .error)
      return .empty
    }
    listingTime = parts.time.uptime - begun
    parts.log.faultEnded(Self.faultKey, "the crash spool can be used again", ["folder": path])
    tell(of: listing, in: path)
    let outcomes = await take(listing.reports, in: folder)
    clean(listing, bytesMax: bytesMax, but: Set(outcomes.filter { $0.value == .more }.keys), folder)
    tellOfFiles()
    return max(outcomes.values.max() ?? .empty, listing.mustLookAgain ? .more : .empty)
  }

  private func tell(of listing: SpoolListing, in path: String) {
    if listing.isCut {
      parts.log.fault(
        Self.cutKey, "the crash spool has more names than are kept; delete those that are no report's",
        ["folder": path, "names": String(SpoolListing.namesMax)])
    }
    if let name = listing.kept {
      parts.log.fault(
        Self.foreignKey, "the crash spool has a folder that can't be deleted; delete it, and what is in it, as root",
        ["folder": path, "name": name.printable])
    } else {
      parts.log.faultEnded(Self.foreignKey, "every foreign folder of the crash spool is gone", ["folder": path])
    }
    guard listing.removed.count > 0 else { return }
    for _ in 0..<listing.removed.count { parts.count(.init(input: "crash_spool", status: 415)) }
    removed.note(
      listing.removed.last, userID: listing.removed.userID, count: listing.removed.count, cause: "it is no regular file"
    )
  }

  /// Users side by side: one whose share of the memory is used up keeps no other one waiting.
  private func take(_ reports: [UInt32: [SpoolListing.Report]], in folder: SpoolFolder) async -> [UInt32: Outcome] {
    await withTaskGroup(of: (UInt32, Outcome).self) { group in
      var outcomes: [UInt32: Outcome] = [:]
      for (index, share) in reports.sorted(by: { $0.key < $1.key }).enumerated() where !Task.isCancelled {
        if index >= Self.usersMax, let (user, outcome) = await group.next() { outcomes[user] = outcome }
        group.addTask { (share.key, await self.take(share.value, of: share.key, in: folder)) }
      }
      for await (user, outcome) in group { outcomes[user] = outcome }
      return outcomes
    }
  }

  /// - Parameter reports: of one user, the oldest first.
  private func take(_ reports: [SpoolListing.Report], of userID: UInt32, in folder: SpoolFolder) async -> Outcome {
    let part = Self.part(of: reports.filter { !isHeld($0) })
    guard !part.isEmpty else { return .empty }
    // A meta that is mended is there once more.
    let bytes = part.reduce(0) { $0 + 2 * ($1.bytes + $1.meta.bytes + Self.reportBytes) }
    let beginnings = part.reduce(0) { $0 + 4 * min($1.meta.bytes, Self.beginningBytes) + 2 * Self.reportBytes }
    var (room, readsAll) = (MemoryRoom?.none, part.allSatisfy { $0.bytes <= Self.payloadBytesMax })
    if readsAll { room = await parts.sink.reserve(bytes: bytes, userID: userID) }
    if room == nil { (room, readsAll) = (await parts.sink.reserve(bytes: beginnings, userID: userID), false) }
    guard let room else {
      if Task.isCancelled { return .empty }
      for report in part {
        refuse(
          report, Refusal(.payloadTooLarge, "\(report.bytes) bytes are more than ingest.memoryMByte lets a user have"),
          folder)
      }
      return .more
    }
    let source = source(of: userID)
    var (left, isSettled, ownRoom): ([SpoolListing.Report], Bool, MemoryRoom?) = (Array(part), true, room)
    for reserved in Self.reservedBytes where !left.isEmpty {
      var (read, submissions): ([SpoolListing.Report], [Submission]) = ([], [])
      for report in left {
        do throws(Refusal) {
          submissions.append(try submission(report, readsAll, reserved: reserved, from: source, folder))
          read.append(report)
        } catch { refuse(report, error, folder) }
      }
      guard !submissions.isEmpty else { break }
      let answers = await parts.sink.submit(SubmissionGroup(submissions, userID: userID), room: ownRoom)
      (left, ownRoom) = ([], nil)
      for (report, answer) in zip(read, answers) {
        if answer.refusal?.code == .metaTooLarge, reserved != Self.reservedBytes.last {
          left.append(report)
        } else if !settle(report, answer, folder) {
          isSettled = false
        }
      }
    }
    return isSettled ? .more : .mustWait
  }

  private static func part(of reports: [SpoolListing.Report]) -> ArraySlice<SpoolListing.Report> {
    var bytes = 0
    let end = reports.prefix(reportsMax).firstIndex { report in
      bytes += report.bytes
      return bytes > groupBytesMax
    }
    return reports.prefix(max(1, min(end ?? reportsMax, reportsMax)))
  }

  private func source(of userID: UInt32) -> SubmissionSource {
    let peer = ReportingPeer(userID: userID, groupIDs: SystemAccounts.groupIDs(ofUser: userID), processID: 0)
    var mending = Mending()
    mending.leavesPayloadOut = true
    return SubmissionSource(peer: peer, mending: mending, sessionID: "crash-spool")
  }

  /// - Parameter readsAll: false: there is room for the beginning of its meta only, and it says how much is left out.
  private func submission(
    _ report: SpoolListing.Report, _ readsAll: Bool, reserved: Int, from source: SubmissionSource, _ folder: SpoolFolder
  ) throws(Refusal) -> Submission {
    let name = report.name
    let text = try folder.read(
      report.meta, bytesMax: Self.payloadBytesMax, beginningBytes: readsAll ? nil : Self.beginningBytes)
    // The common information has never less than the least that is reserved for it behind the first attempt.
    let least = text.count > Limits.metaBytesMax - Self.commonBytesMin ? Self.reservedBytes[1] : 0
    let mended = MendedMeta(text, bytesMax: Limits.metaBytesMax - max(reserved, least))
    var payload = readsAll ? mended.payload : nil
    if readsAll, let file = report.payload { payload = try folder.read(file, bytesMax: Self.payloadBytesMax) }
    // A file of a clock that was not set yet, or of no year of ours, is dated by its arrival.
    let time =
      (CreatedTime.least..<CreatedTime.greatest - 999).contains(report.meta.modified) ? report.meta.modified : nil
    var submission = Submission(
      name.type.text, in: name.namespace.text, meta: mended.meta, payload: payload, createdTime: time,
      reportID: name.reportID, from: source)
    if !readsAll, let left = report.payload ?? (mended.payload == nil ? nil : report.meta) {
      submission.unreadBytes = left.size
    }
    return submission
  }

  // MARK: The end of the files

  /// - Returns: false if it may be taken later.
  private func settle(_ report: SpoolListing.Report, _ answer: SubmissionAnswer, _ folder: SpoolFolder) -> Bool {
    if let refusal = answer.refusal {
      guard refusal.retryMilliseconds == nil && refusal != .stopping else { return false }
      if refusal.code.waitsForConfiguration {
        hold(report, refusal)
        return true
      }
      refuse(report, refusal, folder)
      return true
    }
    // The payload first: if the daemon dies in between, the meta comes again, and its id is known.
    let isGone = (report.payload.map { folder.remove($0.name) } ?? true) && folder.remove(report.meta.name)
    if !isGone {
      parts.log.fault(
        Self.keptKey, "a file of the crash spool can't be deleted", ["folder": folder.path], level: .error)
    }
    parts.count(.init(input: "crash_spool", status: 200))
    return isGone
  }

  /// Leaves the report, and those of its namespace and type, alone until the folder is looked at without them.
  private func hold(_ report: SpoolListing.Report, _ refusal: Refusal) {
    if left.held.count >= Self.heldMax { left.held = [:] }
    left.held["\(report.name.namespace).\(report.name.type)"] = parts.time.uptime + Self.pollInterval
    parts.log.fault(
      Self.heldKey, "reports of the crash spool wait for their namespace or type",
      ["namespace": report.name.namespace.text, "type": report.name.type.text, "cause": refusal.message])
  }

  private func isHeld(_ report: SpoolListing.Report) -> Bool {
    guard !left.held.isEmpty else { return false }
    return left.held["\(report.name.namespace).\(report.name.type)"].map { $0 > parts.time.uptime } ?? false
  }

  /// For good: its files stay for a while under other names.
  private func refuse(_ report: SpoolListing.Report, _ refusal: Refusal, _ folder: SpoolFolder) {
    refuse([report.meta] + (report.payload.map { [$0] } ?? []), refusal.message, folder)
  }

  private func refuse(_ files: [SpoolListing.File], _ cause: String, _ folder: SpoolFolder) {
    for file in files where !folder.setAside(file.name) {
      _ = folder.remove(file.name)  // what can't be renamed must not be read again and again
    }
    parts.count(.init(input: "crash_spool", status: 422))
    refused.note(files[0].name, userID: files[0].userID, cause: cause)
  }

  private func clean(_ listing: SpoolListing, bytesMax: Int, but served: Set<UInt32>, _ folder: SpoolFolder) {
    // A file that ends in .json was finished by its program.
    for file in listing.others where file.name.hasSuffix(".json") && folder.isThere(file) {
      refuse([file], "its name is not NAMESPACE.TYPE.ID.json", folder)
    }
    left.others = listing.leftovers(left.others, uptime: parts.time.uptime)
    for name in SpoolListing.expired(left.others, uptime: parts.time.uptime) { _ = folder.remove(name) }
    let excess = listing.excess(bytesMax: bytesMax, filesMax: Self.userFilesMax, but: served)
    for file in excess where folder.isThere(file) {
      guard folder.remove(file.name) else { continue }
      parts.count(.init(input: "crash_spool", status: 507))
      removed.note(file.name, userID: file.userID, cause: "the user's files are over crashSpool.userMByte, or too many")
    }
  }

  private func tellOfFiles() {
    if let fields = refused.take(now: parts.time.uptime) {
      parts.log.warning("reports of the crash spool are refused; their files end in .refused", fields)
    }
    if let fields = removed.take(now: parts.time.uptime) {
      parts.log.warning("files of the crash spool are deleted", fields)
    }
  }
}

/// Files of the crash spool with the same fate, for a line of the log now and then. Pure.
struct FileTally {
  private static let interval: Duration = .seconds(60)

  private var count = 0
  private var last = (name: "", userID: UInt32(0), cause: "")
  private var told: Duration?

  mutating func note(_ name: String, userID: UInt32, count new: Int = 1, cause: String) {
    count += new
    last = (name, userID, cause)
  }

  /// Takes what was noted since the last line. - Returns: nil if there is nothing to tell, or a line came a moment ago.
  mutating func take(now: Duration) -> Logger.Fields? {
    guard count > 0, told.map({ now - $0 >= Self.interval }) ?? true else { return nil }
    defer { (count, told) = (0, now) }
    return [
      "count": String(count), "last": last.name, "last_user": String(last.userID), "last_cause": last.cause,
    ]
  }
}
