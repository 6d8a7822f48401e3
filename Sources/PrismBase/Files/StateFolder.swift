#if canImport(Glibc)
  import Glibc
#endif

/// The folder that a program keeps its state in: stored reports, for the program's own user alone.
public enum StateFolder {
  /// Why a folder can't hold state, with the command that mends it.
  public struct Fault: Error, Equatable, CustomStringConvertible {
    /// True: another mode is needed, and a new start alone will not help.
    public let isMode: Bool
    /// The fault and its remedy, for people.
    public let description: String
  }

  /// Makes the folder where it is missing, with mode 0700, and the folders above it, with 0755. From then on files that
  /// this process makes are its user's alone (umask).
  /// - Throws: a fault if it can't be made, or if it or a file in it is open to other users.
  public static func prepare(_ path: String) throws(Fault) {
    umask(0o077)
    let names: [String]
    do throws(FileError) {
      try Folder.make(path)
      names = try Folder.names(in: path)
    } catch {
      throw Fault(isMode: false, description: "\(error); make it for this program's user")
    }
    var facts = stat()
    guard stat(path, &facts) == 0 else { throw fault(path, String(cString: strerror(errno))) }
    guard facts.st_mode & 0o077 == 0 else { throw modeFault(path, path, facts.st_mode, mustBe: "0700") }
    for file in names.map({ "\(path)/\($0)" }) where stat(file, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG {
      guard facts.st_mode & 0o077 == 0 else { throw modeFault(path, file, facts.st_mode, mustBe: "0600") }
    }
  }

  private static func modeFault(_ folder: String, _ path: String, _ mode: mode_t, mustBe needed: String) -> Fault {
    let digits = String(mode & 0o7777, radix: 8)
    let found = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    return Fault(
      isMode: true,
      description: "\(path) has mode \(found), must be \(needed): state is for this program's user alone; "
        + "run chmod -R go= \(folder)")
  }

  private static func fault(_ path: String, _ problem: String) -> Fault {
    Fault(isMode: false, description: "\(path): \(problem)")
  }
}
