import CZstd
import Glibc
import PrismBase

/// One line of JSON a report: as `GET /reports` shows it, with the payload in base64.
actor NDJSONOutput: ReportOutput {
  private let executor = DispatchQueueExecutor(label: "prism.collector.ndjson")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// nil: standard output.
  private var file: RotatingFile?

  init(_ options: RotatingFile.Options?, name: String, time: any TimeSource) {
    file = options.map { RotatingFile($0, name: name, time: time) }
  }

  nonisolated var batching: ReportBatching { .large }

  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> [RefusedReport] {
    var text: [UInt8] = []
    for report in reports {
      report.appendLine(to: &text)
      text.append(UInt8(ascii: "\n"))
    }
    if file != nil { try file?.append(text) } else { try Self.print(text) }
    return []
  }

  func rest() async { file?.finishOld() }  // without `async`, the protocol's own would be chosen
  func close() { file?.close() }

  private static func print(_ text: [UInt8]) throws(OutputFailure) {
    var written = 0
    while written < text.count {
      let count = text.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress! + written, $0.count - written) }
      guard count > 0 || errno == EINTR || errno == EAGAIN else {
        throw OutputFailure("standard output can't be written: \(String(cString: strerror(errno)))")
      }
      if count < 0, errno == EAGAIN {
        var descriptor = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        poll(&descriptor, 1, 1000)
      }
      written += max(0, count)
    }
  }
}

extension StoredReport {
  /// As `GET /reports` shows it, with the payload in base64, without a line feed.
  package func appendLine(to text: inout [UInt8]) {
    appendJSON(to: &text)
    if let payload { text += #","payload":"\#(Base64.encode(payload))""#.utf8 }
    text.append(UInt8(ascii: "}"))
  }
}

/// Lines in files of a folder: `NAME.ndjson` is written, and renamed to `NAME-TIME.ndjson` when it is large or old enough.
/// zstd: each piece that is appended is a frame of its own, so `zstdcat` reads a file while it is written. A piece that was
/// written in part, as the disk was full or a crash came, is cut off: it comes again as a whole.
struct RotatingFile {
  struct Options: Sendable, Equatable {
    var folder: String
    var compresses = true
    var bytesMax = 256 * 1_048_576
    var age: Duration = .seconds(3600)
  }

  private let options: Options
  private let path: String
  private let suffix: String
  private let time: any TimeSource
  /// nil: closed.
  private var descriptor: Int32?
  private var bytes = 0
  private var openedAt: Duration = .zero

  /// Makes the folder, and those above it, if they are missing. One that goes away later is not made again: it may be a disk.
  init(_ options: Options, name: String, time: any TimeSource) {
    try? Folder.make(options.folder)  // a fault of the first file says why it could not be made
    (self.options, self.time) = (options, time)
    suffix = options.compresses ? ".ndjson.zst" : ".ndjson"
    path = "\(options.folder)/\(name)"
  }

  /// The text is on the disk when this returns.
  mutating func append(_ text: [UInt8]) throws(OutputFailure) {
    let piece = options.compresses ? try Self.compressed(text) : text
    let isFull = bytes > 0 && (bytes + piece.count > options.bytesMax || isOld)
    if let descriptor, isFull || !isInPlace(descriptor) { close() }
    let descriptor = if let descriptor { descriptor } else { try open() }
    guard StandardStreams.write(piece[...], to: descriptor) else {
      let failure = failure("can't be written")
      if ftruncate(descriptor, bytes) != 0 { close() }
      throw failure
    }
    guard fdatasync(descriptor) == 0 else {
      defer { close() }  // what is on the disk is not known
      throw failure("can't be synced")
    }
    bytes += piece.count
  }

  private var isOld: Bool { bytes > 0 && time.uptime - openedAt > options.age }

  /// Renames a file that is old enough, or of an earlier run: its readers do not wait for the next report.
  mutating func finishOld() {
    guard descriptor.map({ isOld && isInPlace($0) }) ?? true else { return }
    close()
    try? finish()  // the next report says why it can't be renamed
  }

  mutating func close() {
    if let descriptor { Glibc.close(descriptor) }
    descriptor = nil
  }

  /// false: the file was removed, renamed or replaced, or its folder was.
  private func isInPlace(_ descriptor: Int32) -> Bool {
    var (own, named) = (stat(), stat())
    return fstat(descriptor, &own) == 0 && lstat(path + suffix, &named) == 0
      && (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)
  }

  /// Renames the file that is there, without the piece that a crash cut.
  private func finish() throws(OutputFailure) {
    guard access(path + suffix, F_OK) == 0 else { return }
    cutLastPiece()
    guard rename(path + suffix, "\(path)-\(Self.stamp(time))\(suffix)") == 0 else { throw failure("can't be renamed") }
  }

  /// Begins a new file.
  private mutating func open() throws(OutputFailure) -> Int32 {
    try finish()
    let opened = Glibc.open(path + suffix, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o600)
    guard opened >= 0 else { throw failure("can't be made") }
    SideFile.syncFolder(options.folder)
    (descriptor, bytes, openedAt) = (opened, 0, time.uptime)
    return opened
  }

  private func failure(_ what: String) -> OutputFailure {
    OutputFailure("\(path)\(suffix) \(what): \(String(cString: strerror(errno)))")
  }

  /// Of a file that can't be read nothing is cut.
  private func cutLastPiece() {
    let file = Glibc.open(path + suffix, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { return }
    defer { Glibc.close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_size > 0,
      let start = mmap(nil, Int(status.st_size), PROT_READ, MAP_PRIVATE, file, 0), start != MAP_FAILED
    else { return }
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(status.st_size))
    let whole =
      options.compresses ? Self.wholeFrames(bytes) : bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    munmap(start, bytes.count)
    if whole < bytes.count { ftruncate(file, whole) }
  }

  /// The bytes of all frames but for one that is cut at the end.
  private static func wholeFrames(_ bytes: UnsafeRawBufferPointer) -> Int {
    var whole = 0
    while whole < bytes.count {
      let count = ZSTD_findFrameCompressedSize(bytes.baseAddress! + whole, bytes.count - whole)
      guard ZSTD_isError(count) == 0 else { break }
      whole += count
    }
    return whole
  }

  /// `20261122T041200.123456Z`: sorts by time, and no two of one process are equal.
  private static func stamp(_ time: any TimeSource) -> String {
    let milliseconds = RFC3339.text(unixMilliseconds: time.unixMilliseconds).filter { !"-:Z".contains($0) }
    return milliseconds + String(1000 + Int.random(in: 0..<1000)).dropFirst() + "Z"
  }

  private static func compressed(_ text: [UInt8]) throws(OutputFailure) -> [UInt8] {
    var isPacked = false
    let packed = [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(text.count)) { output, count in
      let result = ZSTD_compress(output.baseAddress, output.count, text, text.count, 1)
      isPacked = ZSTD_isError(result) == 0
      count = isPacked ? result : 0
    }
    guard isPacked else { throw OutputFailure("zstd has no memory") }
    return packed
  }
}
