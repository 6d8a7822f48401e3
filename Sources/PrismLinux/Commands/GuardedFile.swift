import Glibc
import PrismBase

/// Opens and reads a file that a server names, part by part of its path: no symbolic link is followed, and no folder or file that
/// holds secrets is entered. Blocks for as long as the disk does.
struct GuardedFile {
  /// Why a file is not read. It says nothing of the file's content.
  struct Fault: Error, Equatable {
    let message: String
    init(_ message: String) { self.message = message }
  }

  /// Folders that are not entered, and files that are not read.
  private let secrets: Set<FileIdentity>

  /// - Parameter secret: paths of folders and files, as they are now.
  init(secret paths: [String]) { secrets = Set(paths.compactMap { FileIdentity(path: $0, followsLinks: true) }) }

  /// - Parameter path: absolute, without `.`, `..` and empty parts. - Parameter bytesMax: a larger file is not read.
  func read(_ path: String, bytesMax: Int) throws(Fault) -> [UInt8] {
    let file = try open(path)
    defer { close(file) }
    var facts = stat()
    guard fstat(file, &facts) == 0 else { throw Self.failure("can't be looked at") }
    guard facts.st_mode & S_IFMT == S_IFREG else { throw Fault("it is not a regular file") }
    guard !secrets.contains(FileIdentity(facts)) else { throw Self.secret }
    // Another name of a file may lie where the pattern leads.
    guard facts.st_nlink == 1 else { throw Fault("it has \(facts.st_nlink) names (hard links), must have one") }
    guard facts.st_size <= bytesMax else { throw Self.tooLarge(Int(facts.st_size), bytesMax) }
    do throws(FileError) { return try SmallFile.read(file, of: path, bytesMax: bytesMax) } catch {
      if case .tooLarge = error.cause { throw Self.tooLarge(bytesMax + 1, bytesMax) }  // it grows
      throw Self.failure("can't be read")
    }
  }

  private func open(_ path: String) throws(Fault) -> Int32 {
    let parts = path.split(separator: "/").map(String.init)
    guard path.hasPrefix("/"), !parts.isEmpty, !parts.contains(where: { $0 == "." || $0 == ".." }) else {
      throw Fault("the path must be absolute, without . and ..")
    }
    var folder: Int32
    do { folder = try Folder.open("/") } catch { throw Fault(error.description) }
    defer { close(folder) }
    for part in parts.dropLast() {
      let next = openat(folder, part, prismPathOnly | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard next >= 0 else { throw Self.failure("can't be opened: a folder of the path") }
      close(folder)
      folder = next
      var facts = stat()
      guard fstat(folder, &facts) == 0 else { throw Self.failure("can't be looked at") }
      guard !secrets.contains(FileIdentity(facts)) else { throw Self.secret }
    }
    // A pipe or a device must not keep it waiting.
    let file = openat(folder, parts[parts.count - 1], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard file >= 0 else { throw Self.failure("can't be opened") }
    return file
  }

  private static let secret = Fault("it is, or lies in, a folder of keys or of the daemon's state, which is never read")

  private static func tooLarge(_ bytes: Int, _ bytesMax: Int) -> Fault {
    Fault("it has \(bytes) bytes, and the namespace takes payloads of at most \(bytesMax) bytes")
  }

  private static func failure(_ problem: String) -> Fault {
    let code = errno
    let why = code == ELOOP || code == ENOTDIR ? "a symbolic link or no folder" : String(cString: strerror(code))
    return Fault("\(problem): \(why)")
  }
}

/// O_PATH, which Glibc's module hides without _GNU_SOURCE (open(2)): a folder is passed through, not read.
private let prismPathOnly: Int32 = 0o10_000_000
