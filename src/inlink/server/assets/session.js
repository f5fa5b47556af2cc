// Logging in and out.
import { $, plain } from "./dom.js";
import { send } from "./api.js";

const form = $("login");
if (form) {
  $("token").focus();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const { to } = await send("POST", "/login", { token: $("token").value });
      location.assign(to);
    } catch (error) {
      $("told").textContent = plain(error.message);
      $("token").select();
    } finally {
      button.disabled = false;
    }
  });
}

const logout = $("logout");
if (logout) {
  logout.addEventListener("click", async () => {
    const { to } = await send("POST", "/logout");
    location.assign(to);
  });
}
