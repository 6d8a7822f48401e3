import Glibc
import PrismBase

/// Files that commands read and write, with errors that say what to do.
enum Files {
  /// The upper end of `limits.maxBodyMByte`, which no payload and no packet passes.
  static let payloadBytesMax = 64 << 20

  /// Reads a file or a pipe to its end. - Parameter bytesMax: a device may have no end. - Throws: 66 (EX_NOINPUT).
  static func read(_ path: String, bytesMax: Int = payloadBytesMax) throws(Failure) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let advice = errno == EACCES ? "; run it as root (sudo), or as a user who may read the file" : ""
      throw Failure(Failure.noInput, "\(path): \(reason()): can't be read\(advice)")
    }
    defer { close(descriptor) }
    do throws(FileError) { return try SmallFile.read(descriptor, of: path, bytesMax: bytesMax) } catch {
      if case .tooLarge = error.cause {
        throw Failure(Failure.noInput, "\(path): has more than \(bytesMax >> 20) MiB, the most that is read")
      }
      throw Failure(Failure.noInput, "\(path): \(reason()): can't be read")
    }
  }

  /// A new file; never over an existing one. - Throws: 73 (EX_CANTCREAT).
  static func create(_ path: String, mode: mode_t, _ bytes: [UInt8]) throws(Failure) {
    do throws(FileError) { try SmallFile.create(path, with: bytes, mode: mode) } catch {
      throw Failure(Failure.cannotCreate, "\(path): \(reason()): not written")
    }
  }

  /// Writes to standard output. - Throws: 73 (EX_CANTCREAT).
  static func writeOutput(_ bytes: [UInt8]) throws(Failure) {
    guard StandardStreams.write(bytes[...], to: STDOUT_FILENO) else {
      throw Failure(Failure.cannotCreate, "standard output: \(reason()): not all of it is written")
    }
  }

  static func reason() -> String { String(cString: strerror(errno)) }
}
