import Glibc
import PrismBase

/// Debug files by build id, each as `ID.debug` in one folder. Replicas of a collector may share the folder.
package struct SymbolFolder: Sendable {
  /// Of one file, and of all; files that are kept.
  package static let fileBytesMax = 1 << 30, bytesMax = 20 << 30, filesMax = 10_000
  private static let suffix = ".debug"
  private static let pieceBytes = 1_048_576
  /// An upload without a new part is forgotten after as many seconds.
  private static let partSeconds = 3600
  /// At a time.
  private static let uploadsMax = 8

  /// Why a file is not taken.
  package struct Fault: Error {
    /// With the file's path.
    package let message: String
  }

  /// The result of adding a file.
  package enum Outcome: Sendable, Equatable {
    case added(String)
    /// A file with its build id that tells as much is there.
    case duplicate(String)
  }

  /// One file, and what tells it from another one with its build id.
  package struct File: Sendable, Equatable {
    /// In lower-case hexadecimal digits.
    package let buildID: String
    /// Its size.
    package let bytes: Int
    /// When it was added, milliseconds since 1970.
    package let time: Int64
    fileprivate let inode: UInt64
  }

  let path: String

  /// - Parameter path: it is made with the first file.
  package init(_ path: String) { self.path = path }

  /// By `errno`.
  private static func fault(_ path: String) -> Fault {
    Fault(message: "\(path): \(String(cString: strerror(errno)))")
  }

  /// nil: all is well.
  package var warning: String? {
    guard !Symbolizer.isInstalled, !files().isEmpty else { return nil }
    return "\(Symbolizer.program) is missing, so no debug file is read: install elfutils"
  }

  /// 8 to 128 lower-case hexadecimal digits.
  package static func isBuildID(_ text: String) -> Bool {
    (8...128).contains(text.utf8.count) && text.utf8.count.isMultiple(of: 2)
      && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
  }

  func path(of buildID: String) -> String { "\(path)/\(buildID)\(Self.suffix)" }

  // MARK: Reading

  /// All files by build id; empty: there is no such folder.
  package func files() -> [String: File] {
    var files: [String: File] = [:]
    for name in SideFile.names(in: path) where name.hasSuffix(Self.suffix) && files.count < Self.filesMax {
      var facts = stat()
      let id = String(name.dropLast(Self.suffix.count))
      guard Self.isBuildID(id), stat("\(path)/\(name)", &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
        continue
      }
      let time = facts.st_mtim.unixMilliseconds
      files[id] = File(buildID: id, bytes: Int(facts.st_size), time: time, inode: UInt64(facts.st_ino))
    }
    return files
  }

  // MARK: Changing

  /// Copies a file into the folder; it is at rest when this returns.
  /// - Parameter buildID: that it must have; nil: any.
  /// - Throws: it is stripped, too large or no ELF file, or there is no room for it.
  package func add(_ file: String, of buildID: String? = nil) throws(Fault) -> Outcome {
    let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw Self.fault(file) }
    defer { close(descriptor) }
    return try add(descriptor, named: file, of: buildID)
  }

  private func add(_ descriptor: Int32, named file: String, of buildID: String? = nil) throws(Fault) -> Outcome {
    let found: SymbolFile
    do throws(SymbolFile.Fault) { found = try SymbolFile(descriptor) } catch {
      throw Fault(message: "\(file): \(error.rawValue)")
    }
    if let buildID, found.buildID != buildID { throw Fault(message: "\(file): it is of build \(found.buildID)") }
    let known = files()
    if known[found.buildID] != nil, !found.hasLines || hasLines(found.buildID) { return .duplicate(found.buildID) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0 else { throw Fault(message: "\(file): it can't be looked at") }
    try checkRoom(Int(facts.st_size), known, file)
    try copy(descriptor, to: self.path(of: found.buildID))
    return .added(found.buildID)
  }

  private func checkRoom(_ bytes: Int, _ known: [String: File], _ file: String) throws(Fault) {
    guard bytes <= Self.fileBytesMax else {
      throw Fault(message: "\(file): it has \(bytes) bytes, at most \(Self.fileBytesMax) are taken")
    }
    guard known.count < Self.filesMax, known.values.reduce(bytes, { $0 + $1.bytes }) <= Self.bytesMax else {
      throw Fault(message: "\(file): \(path) is full; remove symbols of old builds")
    }
  }

  private func hasLines(_ buildID: String) -> Bool {
    let descriptor = open(path(of: buildID), O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return (try? SymbolFile(descriptor))?.hasLines ?? false
  }

  private func make() throws(Fault) {
    guard mkdir(path, 0o700) != 0 else { return Folder.giveToOwner(path, of: FilePath.folder(of: path)) }
    guard errno == EEXIST else { throw Self.fault(path) }
  }

  private func copy(_ descriptor: Int32, to target: String) throws(Fault) {
    try make()
    var template = Array("\(path)/.new-XXXXXX".utf8CString)
    let copied = mkstemp(&template)
    let fresh = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    guard copied >= 0 else { throw Self.fault(fresh) }
    defer { close(copied) }
    do throws(Fault) {
      var (offset, buffer) = (0, [UInt8](repeating: 0, count: Self.pieceBytes))
      while true {
        let count = pread(descriptor, &buffer, buffer.count, off_t(offset))
        guard count >= 0 else { throw Self.fault(fresh) }
        if count == 0 { break }
        guard write(copied, buffer, count) == count else { throw Self.fault(fresh) }
        offset += count
      }
      Folder.giveToOwner(fresh, of: path)
      guard fsync(copied) == 0, rename(fresh, target) == 0 else { throw Self.fault(target) }
    } catch {
      unlink(fresh)
      throw error
    }
    SideFile.syncFolder(path)
  }

  /// - Returns: false: there is no such file.
  package func remove(_ buildID: String) -> Bool {
    guard Self.isBuildID(buildID), unlink(path(of: buildID)) == 0 else { return false }
    SideFile.syncFolder(path)
    return true
  }

  // MARK: Uploads

  /// Takes a part of an upload. After the last one the whole is added, and forgotten in any case.
  /// - Parameters:
  ///   - name: the uploader's, of 1 to 64 letters and digits.
  ///   - offset: of the part in the whole. A part that came before may come again; 0 begins the upload again.
  ///   - size: of the whole.
  /// - Returns: nil: more parts are to come.
  func take(
    _ part: [UInt8], of name: String, at offset: Int, size: Int
  ) throws(Fault) -> Outcome? {
    try make()
    forgetParts()
    try checkRoom(size, files(), "the upload")
    let (file, parts) = ("\(path)/.part-\(name)", SideFile.names(in: path).filter { $0.hasPrefix(".part-") })
    guard parts.count < Self.uploadsMax || parts.contains(".part-\(name)") else {
      throw Fault(message: "\(parts.count) other uploads are not finished; end them, or wait an hour")
    }
    var facts = stat()
    let known = offset > 0 && stat(file, &facts) == 0 ? Int(facts.st_size) : 0
    guard known <= size else {
      throw Fault(message: "\(known) bytes are here of another upload of this name: begin again at offset 0")
    }
    guard offset <= known, part.count <= size - offset else {
      throw Fault(message: "the part begins at \(offset); \(known) bytes of \(size) are here: go on with those")
    }
    let descriptor = open(file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (offset == 0 ? O_TRUNC : 0), 0o600)
    guard descriptor >= 0 else { throw Self.fault(file) }
    defer { close(descriptor) }
    guard pwrite(descriptor, part, part.count, off_t(offset)) == part.count else {
      throw Self.fault(file)
    }
    guard max(known, offset + part.count) >= size else { return nil }
    defer { unlink(file) }
    return try add(descriptor, named: "the upload")
  }

  private func forgetParts() {
    let now = SystemTime().unixMilliseconds  // as the files are dated
    for name in SideFile.names(in: path) where name.hasPrefix(".") {
      var facts = stat()
      let file = "\(path)/\(name)"
      if stat(file, &facts) == 0, abs(now / 1000 - Int64(facts.st_mtim.tv_sec)) > Self.partSeconds { unlink(file) }
    }
  }
}
