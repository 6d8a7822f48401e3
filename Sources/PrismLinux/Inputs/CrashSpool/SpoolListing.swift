import Glibc
import PrismBase
import PrismPacket
import PrismProtocol

/// The files of the crash spool at one moment.
struct SpoolListing: Sendable {
  struct File: Sendable, Equatable {
    var name: String
    var userID: UInt32
    /// Bytes that it has, 2^40 at most.
    var size: Int
    /// That it takes on the disk, or that it has, if those are more; 2^40 at most.
    var bytes: Int
    /// Milliseconds since 1970.
    var modified: Int64
  }

  /// A report whose meta is there.
  struct Report: Sendable, Equatable {
    var name: SpoolFileName
    var meta: File
    /// Only of the same user.
    var payload: File?

    var bytes: Int { meta.bytes + (payload?.bytes ?? 0) }
  }

  /// Names that are kept of one look at the folder. Where there are more, the users with the most of them wait.
  static let namesMax = 65_536
  /// Names that are no regular files', and are deleted at one look.
  static let removalsMax = 16_384

  /// There are more names than are kept.
  var isCut = false
  /// Names that were no regular files' and are deleted, and the last one of them.
  var removed = (count: 0, last: "", userID: UInt32(0))
  /// More of them may be left.
  var mustLookAgain = false
  /// Such a name that can't be deleted.
  var kept: String?
  /// Reports by user, the oldest first.
  var reports: [UInt32: [Report]] = [:]
  /// Files that are no part of a report, the oldest first.
  var others: [File] = []

  init(_ files: [File]) {
    var metas: [(SpoolFileName, File)] = []
    var payloads: [String: File] = [:]
    for file in files {
      switch SpoolFileName(file.name) {
      case .some(let name) where name.content == .meta: metas.append((name, file))
      case .some(let name): payloads[name.stem] = file
      case .none: others.append(file)
      }
    }
    for (name, meta) in metas {
      var report = Report(name: name, meta: meta)
      if let payload = payloads[name.stem], payload.userID == meta.userID {
        report.payload = payload
        payloads[name.stem] = nil
      }
      reports[meta.userID, default: []].append(report)
    }
    others = Self.sorted(others + payloads.values)
    for user in reports.keys { reports[user]?.sort { Self.isOlder($0.meta, $1.meta) } }
  }

  private static func isOlder(_ a: File, _ b: File) -> Bool { (a.modified, a.name) < (b.modified, b.name) }
  fileprivate static func sorted(_ files: [File]) -> [File] { files.sorted(by: isOlder) }

  /// Files that pass what a user may have there, the newest first: they are to be deleted.
  /// - Parameter bytesMax: of one user. - Parameter filesMax: of one user.
  /// - Parameter served: users whose reports are being taken; what waits for its turn is not too much.
  func excess(bytesMax: Int, filesMax: Int, but served: Set<UInt32> = []) -> [File] {
    var all: [UInt32: [File]] = [:]
    for file in others { all[file.userID, default: []].append(file) }
    for (user, reports) in reports {
      all[user, default: []] += reports.flatMap { [$0.meta] + ($0.payload.map { [$0] } ?? []) }
    }
    return all.filter { !served.contains($0.key) }.values.flatMap { files in
      var (bytes, count) = (0, 0)
      return Self.sorted(files).filter { file in
        (bytes, count) = (bytes + file.bytes, count + 1)
        return bytes > bytesMax || count > filesMax
      }.reversed()
    }
  }

  /// A file of no report, and since when it lies there unchanged, on the uptime clock: no wall clock says how old it is.
  struct Leftover: Equatable {
    var modified: Int64
    var since: Duration
  }

  /// The files of no report, those that were known before with their times.
  func leftovers(_ known: [String: Leftover], uptime now: Duration) -> [String: Leftover] {
    var found: [String: Leftover] = [:]
    for file in others.prefix(CrashSpool.userFilesMax) {
      let before = known[file.name].flatMap { $0.modified == file.modified ? $0 : nil }
      found[file.name] = before ?? Leftover(modified: file.modified, since: now)
    }
    return found
  }

  /// Names of leftovers that lie there for long enough to be deleted: what a dying program did not finish, and refused
  /// reports.
  static func expired(_ leftovers: [String: Leftover], uptime now: Duration) -> [String] {
    leftovers.compactMap { name, leftover in
      let isRefused = name.hasSuffix(CrashSpool.refusedSuffix)
      let ageMax = isRefused ? CrashSpool.refusedAgeMax : CrashSpool.unfinishedAgeMax
      return now - leftover.since > ageMax ? name : nil
    }.sorted()
  }
}

/// Files of a folder that is being read, by user: the names of one user push no other user's out. Pure.
struct SpoolShares {
  private(set) var files: [UInt32: [SpoolListing.File]] = [:]
  private(set) var isCut = false
  private var count = 0
  private let namesMax: Int

  /// - Parameter namesMax: files that are kept, of all users.
  init(namesMax: Int) { self.namesMax = namesMax }

  /// Keeps the file. If there are too many, the users with the most of them keep their oldest ones.
  mutating func add(_ file: SpoolListing.File) {
    files[file.userID, default: []].append(file)
    count += 1
    if count > namesMax { cut() }
  }

  /// A quarter is free afterwards, so that a folder of any size costs little for each name.
  private mutating func cut() {
    isCut = true
    var limit = namesMax
    func kept(_ limit: Int) -> Int { files.values.reduce(0) { $0 + min($1.count, limit) } }
    while limit > 1, kept(limit) > namesMax * 3 / 4 { limit /= 2 }
    for (user, own) in files where own.count > limit { files[user] = Array(SpoolListing.sorted(own).prefix(limit)) }
    count = kept(limit)
    // There are as many users as names.
    while count > namesMax * 3 / 4, let last = files.popFirst() { count -= last.value.count }
  }
}

extension SpoolListing {
  /// Reads an open folder.
  init(folder descriptor: Int32, at path: String, removalsMax: Int = Self.removalsMax) throws(FileError) {
    var (shares, removed) = (SpoolShares(namesMax: Self.namesMax), (count: 0, last: "", userID: UInt32(0)))
    var kept: String?
    try Folder.forEachName(in: descriptor, of: path) { name in
      var facts = stat()
      guard fstatat(descriptor, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 else { return }
      if facts.st_mode & S_IFMT == S_IFREG { return shares.add(File(name: name, facts)) }
      // fsck's folder, where the spool is a file system of its own.
      guard removed.count < removalsMax, name != "lost+found" else { return }
      let isFolder = facts.st_mode & S_IFMT == S_IFDIR
      if unlinkat(descriptor, name, isFolder ? AT_REMOVEDIR : 0) == 0 {
        removed = (removed.count + 1, name, facts.st_uid)
      } else if errno != ENOENT {
        kept = name
      }
    }
    self.init(shares.files.values.flatMap { $0 })
    (isCut, self.removed, self.kept) = (shares.isCut, removed, kept)
    mustLookAgain = removed.count == removalsMax
    findPayloads(in: descriptor)
  }

  /// A payload has its name before its meta has. But while names change, a folder may be read without it.
  mutating func findPayloads(in folder: Int32) {
    for (user, list) in reports {
      for (index, report) in list.enumerated() where report.payload == nil {
        let payload = File("\(report.name.stem).payload", in: folder)
        if let payload, payload.userID == user { reports[user]?[index].payload = payload }
      }
    }
  }
}

extension SpoolListing.File {
  /// - Returns: nil if it is gone, or no regular file.
  fileprivate init?(_ name: String, in folder: Int32) {
    var facts = stat()
    guard fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
    self.init(name: name, facts)
  }

  private static let sizeMax = 1 << 40

  init(name: String, _ facts: stat) {
    (self.name, userID) = (name, facts.st_uid)
    // A file without blocks says any size. No sum of sizes may pass what an integer holds.
    size = min(Int(facts.st_size), Self.sizeMax)
    bytes = min(max(size, Int(facts.st_blocks) * 512), Self.sizeMax)
    modified = facts.st_mtim.unixMilliseconds
  }
}

/// The name of a file in the crash spool: `NAMESPACE.TYPE.ID.json` is a report's meta, and the same name with `.payload` is
/// its payload. Pure.
struct SpoolFileName: Hashable, Sendable {
  enum Content: Hashable, Sendable { case meta, payload }

  let namespace: NamespaceName
  let type: ReportType
  let reportID: ReportID
  let content: Content
  /// The name without its suffix.
  let stem: String

  /// A type may have dots; the other parts may not. - Returns: nil if the name is of another form.
  init?(_ name: String) {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count >= 4, let content = Self.contents[String(parts[parts.count - 1])],
      let namespace = NamespaceName(String(parts[0])), let reportID = Self.id(parts[parts.count - 2]),
      let type = ReportType(parts[1..<(parts.count - 2)].joined(separator: "."))
    else { return nil }
    (self.namespace, self.type, self.reportID, self.content) = (namespace, type, reportID, content)
    stem = parts.dropLast().joined(separator: ".")
  }

  private static let contents: [String: Content] = ["json": .meta, "payload": .payload]

  /// The program that gave the name has died. An id with other signs gets their hexadecimal digits, and one that is too long is cut
  /// before its checksum.
  private static func id(_ text: Substring) -> ReportID? {
    if let id = ReportID(String(text)) { return id }
    guard !text.isEmpty else { return nil }
    let mended = text.utf8.map { byte in
      let sign = String(UnicodeScalar(byte))
      return ReportID(sign) == nil ? "_" + Hex.encode([byte]) : sign
    }.joined()
    let digest = (try? Checksum.sha256(Array(text.utf8))) ?? ""
    return ReportID(mended) ?? ReportID("\(mended.prefix(40))_\(digest.prefix(16))")
  }
}
