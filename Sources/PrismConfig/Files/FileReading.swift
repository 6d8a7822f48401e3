import Glibc
import PrismBase

/// Why a file could not be read, as a fault of the configuration has it.
package struct FileFault: Error, Equatable {
  /// The reason, in the system's words if a call failed.
  package let reason: String
  let isMissing: Bool
  let isDenied: Bool
  /// The file was read, and its content is not as it should be.
  var isContent = false

  init(errno code: Int32) {
    (isMissing, isDenied) = (code == ENOENT || code == ENOTDIR, code == EACCES)
    reason =
      String(cString: strerror(code))
      + (isDenied ? " for user \(geteuid()); read it as root (sudo), or let this user read it" : "")
  }

  package init(_ reason: String, isContent: Bool = true) {
    (self.reason, isMissing, isDenied, self.isContent) = (reason, false, false, isContent)
  }

  init(_ error: FileError) {
    switch error.cause {
    case .system(let code, _): self.init(errno: code)
    case .notRegular: self.init("not a regular file", isContent: false)
    case .tooLarge(let bytesMax): self.init("over \(bytesMax) bytes, the most it may have", isContent: false)
    }
  }
}

/// Files of the configuration.
package enum FileReading {
  /// Reads a whole regular file. - Returns: its bytes and the permission bits of its mode.
  package static func read(_ path: String, bytesMax: Int) throws(FileFault) -> (bytes: [UInt8], mode: UInt32) {
    do throws(FileError) { return try SmallFile.readWithMode(path, bytesMax: bytesMax) } catch {
      throw FileFault(error)
    }
  }

  /// The names in a folder, sorted; nil if there is no such folder.
  static func names(in folder: String) throws(FileFault) -> [String]? {
    do throws(FileError) { return try Folder.names(in: folder) } catch {
      if case .system(ENOENT, _) = error.cause { return nil }
      throw FileFault(error)
    }
  }
}
