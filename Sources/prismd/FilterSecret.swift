import PrismAdmission
import PrismBase
import PrismLinux
import PrismPacket
import PrismProtocol

/// `STATE/redact.key`: 32 bytes of chance, made at the first start. With it `redact` hashes values, so that equal values stay
/// equal on this device, and a reader without the file can't try values out.
enum FilterSecret {
  private static let name = "redact.key"
  private static let byteCount = 32
  /// Of HMAC-SHA-256, as `redact` writes them: 32 hexadecimal digits.
  private static let hashBytes = 16

  /// - Throws: for a file that can't be read or made, or has another length.
  static func keyedHash(folder: String) throws(StartFailure) -> FilterTools.KeyedHash {
    let path = "\(folder)/\(name)"
    let kept = try read(path)
    var bytes = if let kept { kept } else { try make(path) }
    guard bytes.count == byteCount else {
      throw StartFailure(
        exitCode: .configuration,
        message: "\(path): has \(bytes.count) bytes, must have \(byteCount); remove it for a new one: hashes will "
          + "differ")
    }
    let secret = Secret(taking: &bytes)
    return { value in (try? Hashing.hmacSHA256(key: secret, value)).map { Array($0.prefix(hashBytes)) } }
  }

  /// nil if there is no such file yet.
  private static func read(_ path: String) throws(StartFailure) -> [UInt8]? {
    do throws(FileError) { return try SmallFile.read(path, bytesMax: 2 * byteCount) } catch {
      if error.isMissing { return nil }
      throw StartFailure(exitCode: .cannotCreate, message: error.description)
    }
  }

  private static func make(_ path: String) throws(StartFailure) -> [UInt8] {
    guard let secret = try? Hashing.randomBytes(byteCount) else {
      throw StartFailure(exitCode: .software, message: "\(path): the system gives no chance for a secret")
    }
    do throws(FileError) { try SmallFile.replace(path, with: secret) } catch {
      throw StartFailure(exitCode: .cannotCreate, message: error.description)
    }
    return secret
  }
}
